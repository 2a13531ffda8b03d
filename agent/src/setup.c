/* Sets the agent up. The agent's process is not dumpable, so the sandbox's root can neither trace it nor read
 * /proc/<agent>/{mem,fd,environ,…}. */
#include "setup.h"

#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define CHILD_ABOVE_AGENT 300

static struct rlimit files_at_start;
static int agent_score, child_score;
static int process_limit = -1; /* file with the limit of processes, if it counts per sandbox */

void close_from(int first) {
  if (syscall(SYS_close_range, (unsigned)first, ~0u, 0u) == 0) return;
  struct rlimit limit;
  int end = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536 ? (int)limit.rlim_cur : 65536;
  for (int fd = first; fd < end; fd++) close(fd);
}

static int write_score(int score) {
  char text[16];
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  int size = snprintf(text, sizeof text, "%d", score);
  ssize_t written = write(fd, text, (size_t)size);
  close(fd);
  return written == size ? 0 : -1;
}

static int read_score(void) {
  char text[16] = {0};
  int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  return size > 0 ? atoi(text) : 0;
}

/*
 * Chooses OOM scores, so that the kernel kills commands and not the agent if memory runs out. The agent tries to lower its own
 * score. If this is forbidden, as it often is, commands get a higher score, which is always allowed.
 */
static void choose_scores(void) {
  write_score(-1000);
  agent_score = read_score();
  child_score = agent_score < 0 ? 0 : agent_score + CHILD_ABOVE_AGENT;
  if (child_score > 1000) child_score = 1000;
}

/* The process limit of the sandbox's cgroup, v1 or v2. The file stays open, because each new process reads it. */
static int open_process_limit(void) {
  int fd = open("/sys/fs/cgroup/pids.max", O_RDONLY | O_CLOEXEC);
  return fd < 0 ? open("/sys/fs/cgroup/pids/pids.max", O_RDONLY | O_CLOEXEC) : fd;
}

/* Reads the limit of processes. Returns 0 if there is no limit. */
static rlim_t read_process_limit(void) {
  char text[24] = {0};
  ssize_t size = pread(process_limit, text, sizeof text - 1, 0);
  return size > 0 ? strtoul(text, NULL, 10) : 0; /* "max" means no limit */
}

/* Whether the kernel counts the processes of each sandbox. Before Linux 5.14 it counts per host uid, which sandboxes may share. */
static bool counts_for_sandbox(void) {
  struct utsname kernel;
  int major, minor;
  if (uname(&kernel) < 0 || sscanf(kernel.release, "%d.%d", &major, &minor) != 2) return false;
  return major > 5 || (major == 5 && minor >= 14);
}

/*
 * Sets `ulimit -u` to the present limit of the cgroup plus one. So the cgroup refuses first, and counts the refusal. A resize may
 * have changed the limit of the cgroup.
 */
static void show_process_limit(void) {
  struct rlimit limit;
  rlim_t most = read_process_limit() + 1;
  if (most == 1 || getrlimit(RLIMIT_NPROC, &limit) < 0) return;
  if (most > limit.rlim_max) most = limit.rlim_max;
  limit = (struct rlimit){.rlim_cur = most, .rlim_max = most};
  setrlimit(RLIMIT_NPROC, &limit);
}

static void bring_loopback_up(void) {
  struct ifreq request = {0};
  memcpy(request.ifr_name, "lo", 3);
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  if (ioctl(fd, SIOCGIFFLAGS, &request) == 0 && !(request.ifr_flags & IFF_UP)) {
    request.ifr_flags |= IFF_UP;
    ioctl(fd, SIOCSIFFLAGS, &request);
  }
  close(fd);
}

/*
 * Fills descriptors 0, 1 and 2, so that no descriptor of the agent has one of these numbers: children use them as standard streams.
 */
static void fill_standard_streams(void) {
  for (int fd = 0; fd <= 2; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) abort();
}

/* Sets ignored signals to their default, because programs would inherit that they are ignored. Handlers are not inherited. */
static void ignore_no_signals(void) {
  struct sigaction action;
  for (int number = 1; number < NSIG; number++)
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN) signal(number, SIG_DFL);
}

void setup_agent(void) {
  fill_standard_streams();
  ignore_no_signals();
  close_from(4);
#ifndef __SANITIZE_ADDRESS__
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* the leak checker of a sanitized build traces itself */
#endif
  if (getpid() != 1) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  choose_scores();
  if (getpid() == 1 && counts_for_sandbox()) process_limit = open_process_limit();
  bring_loopback_up();
  if (getrlimit(RLIMIT_NOFILE, &files_at_start) == 0) {
    struct rlimit all = {.rlim_cur = files_at_start.rlim_max, .rlim_max = files_at_start.rlim_max};
    setrlimit(RLIMIT_NOFILE, &all);
  }
  if (chdir("/") < 0) abort();
  umask(022);
}

void setup_child(void) {
  setsid();
  signal(SIGPIPE, SIG_DFL); /* the only signal that the agent ignores */
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (child_score != agent_score) write_score(child_score);
  if (files_at_start.rlim_max) setrlimit(RLIMIT_NOFILE, &files_at_start);
  show_process_limit();
}
