/*
 * Receives SIGCHLD, SIGTERM and SIGINT through a signalfd. When a process of the agent ends, calls the function registered for its
 * pid.
 */
#include "reaper.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fields.h"
#include "loop.h"
#include "shutdown.h"

#define BUCKETS 256
#define TERM_GRACE_MILLISECONDS 5000

static struct child *children[BUCKETS];
static struct source signals;

static struct child **bucket(pid_t pid) { return &children[(unsigned)pid % BUCKETS]; }

void reaper_expect(struct child *child, pid_t pid, void (*ended)(struct child *, int)) {
  struct child **head = bucket(pid);
  *child = (struct child){.pid = pid, .ended = ended, .next = *head};
  *head = child;
}

void reaper_forget(struct child *child) {
  if (!child->pid) return;
  for (struct child **link = bucket(child->pid); *link; link = &(*link)->next)
    if (*link == child) {
      *link = child->next;
      break;
    }
  child->pid = 0;
}

bool reaper_knows(pid_t pid) {
  for (struct child *child = *bucket(pid); child; child = child->next)
    if (child->pid == pid) return true;
  return false;
}

static void tell(pid_t pid, int status) {
  for (struct child *child = *bucket(pid); child; child = child->next)
    if (child->pid == pid) {
      /*
       * Signal 0 only asks whether the process group has members. While the group has members, the kernel does not reuse its
       * number.
       */
      child->group_left = kill(-pid, 0) == 0;
      reaper_forget(child);
      child->ended(child, status);
      return;
    }
}

bool reaper_reap(void) {
  for (;;) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return pid < 0 && errno == ECHILD;
    tell(pid, status);
  }
}

/*
 * Whether a signal may end the agent. If the agent is PID 1, only a process outside the sandbox may end it. The kernel reports such
 * a sender as pid 0.
 */
static bool may_end_us(const struct signalfd_siginfo *info) {
  return getpid() != 1 || (info->ssi_code == SI_USER && info->ssi_pid == 0);
}

static void on_signal(struct source *source, uint32_t events) {
  (void)events;
  struct signalfd_siginfo info;
  while (read(source->fd, &info, sizeof info) == (ssize_t)sizeof info)
    if (info.ssi_signo != SIGCHLD && may_end_us(&info)) shutdown_begin(TERM_GRACE_MILLISECONDS);
  if (reaper_reap()) shutdown_nobody_left();
}

void reaper_start(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_SETMASK, &set, NULL);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) abort();
  source_open(&signals, fd, on_signal);
  source_watch(&signals, EPOLLIN);
}

void exit_payload(uint8_t payload[5], int status) {
  payload[0] = WIFSIGNALED(status) ? 1 : 0;
  put_u32(payload + 1, (uint32_t)(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)));
}

bool child_signal_group(struct child *child, pid_t group, int signal_number) {
  if (!child->pid && !child->group_left) return false;
  child->group_left = kill(-group, signal_number) == 0;
  /*
   * Directly after the fork, the child is still in the agent's process group, so the signal to the child's own group would miss it.
   */
  if (child->pid) kill(child->pid, signal_number);
  return child->pid || child->group_left;
}
