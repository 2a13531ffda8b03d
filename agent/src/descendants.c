/*
 * Finds the descendants of a process by the parent pids in /proc. A child that is forked during the search is missed. So a function
 * that kills descendants searches again until it finds none.
 */
#include "descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sudo.h"

#define PROCESSES_MAX 65536u
#define KILL_ROUNDS 8

struct process {
  pid_t pid, parent, session;
  unsigned long long started; /* in clock ticks since boot */
  bool marked;
};

/* Parses "pid (name, maybe with parentheses) S ppid pgrp session …". The start time is the 20th field after the parentheses. */
static bool read_stat(const char *pid, struct process *process) {
  char path[32], text[512];
  snprintf(path, sizeof path, "/proc/%.10s/stat", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return false;
  text[size] = 0;
  const char *behind = strrchr(text, ')');
  char state;
  int parent, group, session;
  unsigned long long started;
  static const char format[] = " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu";
  if (!behind || sscanf(behind + 1, format, &state, &parent, &group, &session, &started) != 5) return false;
  *process = (struct process){.pid = atoi(pid), .parent = parent, .session = session, .started = started};
  return state != 'Z' && state != 'X';
}

/* A process started by sudo counts as a child of sudo's caller. */
static bool read_process(const char *pid, struct process *process) {
  if (!read_stat(pid, process)) return false;
  pid_t client = process->parent == getpid() ? sudo_client_of(process->pid) : 0;
  if (client) process->parent = client;
  return true;
}

static bool read_number(pid_t pid, struct process *process) {
  char text[16];
  snprintf(text, sizeof text, "%d", (int)pid);
  return read_stat(text, process);
}

static struct process *list(size_t *count) {
  *count = 0;
  DIR *directory = opendir("/proc");
  if (!directory) return NULL;
  struct process *processes = NULL;
  size_t room = 0;
  for (struct dirent *entry; *count < PROCESSES_MAX && (entry = readdir(directory));) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    if (*count == room) {
      struct process *more = realloc(processes, (room + 256) * sizeof *more);
      if (!more) break;
      processes = more;
      room += 256;
    }
    if (read_process(entry->d_name, &processes[*count])) (*count)++;
  }
  closedir(directory);
  return processes;
}

/* Returns whether the pid is marked as a descendant. Uses binary search, because /proc lists processes by rising pid. */
static bool is_marked(const struct process *processes, size_t count, pid_t pid) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (processes[middle].pid == pid) return processes[middle].marked;
    if (processes[middle].pid < pid) low = middle + 1;
    else high = middle;
  }
  return false;
}

static void mark(struct process *processes, size_t count, pid_t root) {
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < count; i++) {
      struct process *process = &processes[i];
      if (process->marked || process->pid == root || process->pid == getpid()) continue;
      process->marked = (root && (process->parent == root || (process->session == root && root != getpid()))) ||
                        is_marked(processes, count, process->parent);
      more |= process->marked;
    }
  }
}

static void mark_known(struct process *processes, size_t count, const struct process_mark *known, size_t known_count) {
  for (size_t k = 0; k < known_count; k++)
    for (size_t i = 0; i < count; i++)
      if (processes[i].pid == known[k].pid && processes[i].started == known[k].started) processes[i].marked = true;
}

struct process_mark *descendants_find(pid_t root, const struct process_mark *known, size_t known_count, size_t *found) {
  size_t count;
  struct process *processes = list(&count);
  mark_known(processes, count, known, known_count);
  mark(processes, count, root);
  *found = 0;
  for (size_t i = 0; i < count; i++) *found += processes[i].marked;
  struct process_mark *marks = *found ? malloc(*found * sizeof *marks) : NULL;
  *found = 0;
  for (size_t i = 0; marks && i < count; i++)
    if (processes[i].marked) marks[(*found)++] = (struct process_mark){processes[i].pid, processes[i].started};
  free(processes);
  return marks;
}

struct process_mark process_mark_of(pid_t pid) {
  struct process process;
  return read_number(pid, &process) ? (struct process_mark){pid, process.started} : (struct process_mark){0};
}

bool process_lives(const struct process_mark *wanted) {
  struct process process;
  return wanted->pid > 0 && read_number(wanted->pid, &process) && process.started == wanted->started;
}

void descendants_signal(pid_t root, int signal_number) {
  for (int round = 0; round < KILL_ROUNDS; round++) {
    size_t count, found = 0;
    struct process *processes = list(&count);
    mark(processes, count, root);
    for (size_t i = 0; i < count; i++)
      if (processes[i].marked && kill(processes[i].pid, signal_number) == 0) found++;
    free(processes);
    if (!found || signal_number != SIGKILL) return;
  }
}
