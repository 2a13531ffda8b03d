/*
 * The list of jobs, and the functions that start, end and remove a job. Output is stored even if no connection follows it, and even
 * after the first process has ended.
 */
#include "job.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define JOBS_MAX 1024
#define LAST_OUTPUT_MAX (1024 * 1024)

struct job *jobs;
static unsigned job_count;
static uint64_t last_serial;

struct job *job_find(const char *id) {
  for (struct job *job = jobs; job; job = job->next)
    if (strcmp(job->id, id) == 0) return job;
  return NULL;
}

struct job *job_named(struct connection *connection, const char *id) {
  struct job *job = job_find(id);
  if (!job) connection_fail(connection, STAGE_JOB, ENOENT);
  return job;
}

/* ---- output of jobs ---- */

/* Reads once from an output of a job into the job's ring. Returns false if nothing was read. */
static bool collect(struct job *job, int which, size_t at_most) {
  static uint8_t bytes[CHUNK];
  struct source *source = &job->output[which];
  ssize_t got = read(source->fd, bytes, at_most < sizeof bytes ? at_most : sizeof bytes);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) { /* a terminal reports EIO when no process has it open any more */
    source_close(source);
    return false;
  }
  ring_append(&job->record.ring, which == 0 ? FROM_STDOUT : FROM_STDERR, bytes, (size_t)got);
  return true;
}

static void on_stdout(struct source *source, uint32_t events) {
  (void)events;
  struct job *job = owner_of(source, struct job, output[0]);
  if (collect(job, 0, CHUNK)) record_wake(&job->record);
}

static void on_stderr(struct source *source, uint32_t events) {
  (void)events;
  struct job *job = owner_of(source, struct job, output[1]);
  if (collect(job, 1, CHUNK)) record_wake(&job->record);
}

/*
 * Collects the output that the first process left. A background child may write more at any time, so reads only what a pipe
 * contains now, and from a terminal at most LAST_OUTPUT_MAX bytes.
 */
static void collect_last(struct job *job, int which) {
  int waiting = 0;
  if (job->output[which].fd < 0) return;
  if (job->is_terminal || ioctl(job->output[which].fd, FIONREAD, &waiting) < 0) waiting = LAST_OUTPUT_MAX;
  for (uint64_t until = job->record.ring.end + (uint64_t)waiting; job->output[which].fd >= 0 && job->record.ring.end < until;)
    if (!collect(job, which, (size_t)(until - job->record.ring.end))) return;
}

/* ---- start, end and removal of jobs ---- */

void jobs_hang_up(void) {
  for (struct job *job = jobs; job; job = job->next)
    if (job->is_terminal && job->child.pid > 0) kill(job->child.pid, SIGHUP);
}

bool jobs_are_full(void) { return job_count >= JOBS_MAX; }

void job_enlist(struct job *job) {
  struct job **link = &jobs;
  while (*link) link = &(*link)->next;
  *link = job;
  job_count++;
  job->serial = ++last_serial;
  job->created_at = wall_milliseconds();
}

static void close_sources(struct job *job) {
  source_close(&job->report);
  source_close(&job->input);
  for (int i = 0; i < 2; i++) source_close(&job->output[i]);
}

static void unlist(struct job *job) {
  for (struct job **link = &jobs; *link; link = &(*link)->next)
    if (*link == job) {
      *link = job->next;
      break;
    }
  job_count--;
  job->unlisted = true;
}

void job_release(struct job *job) {
  if (!job->unlisted) unlist(job);
  inputs_fail(job, ESRCH);
  close_sources(job);
  if (job->record.followers) return;
  reaper_forget(&job->child);
  ring_close(&job->record.ring);
  free(job->metadata);
  bury(job);
}

static void end(struct job *job, int status) {
  uint8_t exit[5];
  exit_payload(exit, status);
  job->state = JOB_ENDED;
  job->status = status;
  record_end(&job->record, exit);
}

/* Writes why the start failed to the job's error output, because the job has no process that could write it. */
static void explain(struct job *job, enum stage stage, int error_number) {
  const char *what = stage == STAGE_USER ? "its user" : stage == STAGE_CWD ? "its working directory" : "the program";
  char text[192];
  int size = snprintf(text, sizeof text, "It could not be started: %s: %s.\n", what, strerror(error_number));
  if (size > 0) ring_append(&job->record.ring, FROM_STDERR, (const uint8_t *)text, (size_t)size);
}

static void on_report(struct source *source, uint32_t events) {
  (void)events;
  struct job *job = owner_of(source, struct job, report);
  uint8_t payload[5];
  ssize_t got = read(source->fd, payload, sizeof payload);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  source_close(source);
  struct connection *spawner = job->spawner;
  job->spawner = NULL;
  if (spawner) spawner->state = NULL;
  if (got == (ssize_t)sizeof payload) {
    if (spawner) connection_fail(spawner, payload[0], (int)get_u32(payload + 1));
    if (job->keeps_failed) { /* the job's process is about to exit with 127 */
      explain(job, payload[0], (int)get_u32(payload + 1));
      job->state = JOB_RUNNING;
      return;
    }
    end(job, 127 << 8);
    removers_continue(job);
    if (!job->unlisted) job_release(job);
    return;
  }
  job->state = JOB_RUNNING;
  put_u32(payload, (uint32_t)job->group);
  if (spawner) {
    connection_send(spawner, KIND_OK, payload, 4);
    connection_end(spawner);
  }
}

static void on_ended(struct child *child, int status) {
  struct job *job = owner_of(child, struct job, child);
  if (job->state == JOB_STARTING) on_report(&job->report, EPOLLIN);
  if (job->state == JOB_ENDED) return;
  job->ended_at = wall_milliseconds();
  for (int i = 0; i < 2; i++) collect_last(job, i);
  source_close(&job->input);
  inputs_fail(job, ESRCH);
  end(job, status);
  removers_continue(job);
}

static void on_input_room(struct source *source, uint32_t events) {
  (void)events;
  inputs_continue(owner_of(source, struct job, input));
}

static void on_left(struct record *record) {
  struct job *job = owner_of(record, struct job, record);
  if (job->unlisted) job_release(job);
}

void job_started(struct job *job, pid_t pid, uint32_t ring_bytes, bool keeps_beginning, const int ours[3], int report) {
  ring_open(&job->record.ring, ring_bytes, keeps_beginning);
  record_start(&job->record, on_left);
  job->group = pid;
  reaper_expect(&job->child, pid, on_ended);
  source_open(&job->input, ours[0], on_input_room);
  source_open(&job->output[0], ours[1], on_stdout);
  source_open(&job->output[1], ours[2], on_stderr);
  source_open(&job->report, report, on_report);
  source_watch(&job->report, EPOLLIN);
  for (int i = 0; i < 2; i++) source_watch(&job->output[i], EPOLLIN);
}
