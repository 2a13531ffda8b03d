/*
 * Makes the named pipes between the agent and shells (meeting.h). Only root may list or change their directory. The directory is in
 * memory if possible, so a full disk has no effect. If the sandbox's root removes the directory, the next call of `meeting_open`
 * makes another one.
 */
#include "meeting.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY_PATH 40

static char directory[DIRECTORY_PATH];
static unsigned long long last_name;
static pid_t maker;

/*
 * Removes the directory of the named pipes to shells. Only an agent in a test needs this: elsewhere the sandbox ends with its
 * agent.
 */
static void remove_directory(void) {
  DIR *entries = getpid() == maker ? opendir(directory) : NULL; /* a forked process leaves the directory alone */
  if (!entries) return;
  for (struct dirent *entry; (entry = readdir(entries));) unlinkat(dirfd(entries), entry->d_name, 0);
  closedir(entries);
  rmdir(directory);
}

static bool make_directory(void) {
  static const char *const parents[] = {"/dev/shm", "/run", "/tmp", "/var/tmp"};
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) random = (uintptr_t)&random;
  for (size_t i = 0; i < sizeof parents / sizeof *parents; i++) {
    snprintf(directory, sizeof directory, "%s/.alcove-%016llx", parents[i], (unsigned long long)random);
    if (mkdir(directory, 0711) < 0) continue;
    if (!maker) atexit(remove_directory);
    maker = getpid();
    return true;
  }
  *directory = 0;
  return false;
}

static bool make_pipe(char path[MEETING_PATH]) {
  for (int attempt = 0; attempt < 2; attempt++) {
    if (!*directory && !make_directory()) return false;
    snprintf(path, MEETING_PATH, "%s/%llx", directory, ++last_name);
    if (mkfifo(path, 0600) == 0) return true;
    if (errno != ENOENT) return false;
    *directory = 0;
  }
  return false;
}

static bool is_pipe(int fd) {
  struct stat what;
  return fstat(fd, &what) == 0 && S_ISFIFO(what.st_mode);
}

bool meeting_open(char path[MEETING_PATH], enum meeting_use use, int *reading, int *writing) {
  *reading = *writing = -1;
  if (!make_pipe(path)) return false;
  *reading = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  *writing = *reading >= 0 ? open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC) : -1;
  /* Let every user open the pipe. A command may run a program as another user, and this program may open /dev/stdout. */
  if (*writing >= 0 && is_pipe(*reading) && fchmod(*reading, use == SANDBOX_READS ? 0444 : 0222) == 0) return true;
  int reason = errno;
  if (*reading >= 0) close(*reading);
  if (*writing >= 0) close(*writing);
  *reading = *writing = -1;
  meeting_close(path);
  errno = reason;
  return false;
}

void meeting_close(const char *path) {
  if (*path) unlink(path);
}
