/*
 * The process between a sudo client (sudo_client.c) and the client's command. This process is root. Processes that the command
 * leaves behind become children of this process, and are killed if the client is killed. The command gets the client's descriptors,
 * but a new terminal (sudo_terminal.h).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descendants.h"
#include "loop.h"
#include "setup.h"
#include "sudo.h"
#include "sudo_request.h"

#define PATIENCE_SECONDS 10       /* timeout for a client's request */
#define GRACE_MILLISECONDS 1000   /* time between asking a command to end and killing it */
#define KILL_MILLISECONDS 10000   /* after this time the process stops waiting for killed processes */
#define FAREWELL_MILLISECONDS 5000 /* time for the client to read what is left in the terminal */

struct service {
  int peer, children; /* children: a descriptor of SIGCHLD */
  int terminal;       /* -1: there is none */
  pid_t command;
  pid_t foreground; /* the group that gets the terminal when the command continues */
};

static bool say(const struct service *service, uint8_t message, uint8_t value) {
  uint8_t both[2] = {message, value};
  return send(service->peer, both, sizeof both, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof both;
}

_Noreturn static void refuse(const struct service *service, enum sudo_refusal why) {
  say(service, SUDO_REFUSED, (uint8_t)why);
  _exit(0);
}

static bool is_allowed(const struct sudo_policy *policy, const struct sudo_peer *peer) {
  if (peer->uid == 0 || strcmp(policy->user, "*") == 0) return true;
  struct user user;
  return user_find(&user, policy->user) && user.uid == peer->uid;
}

static void find_caller(const struct sudo_peer *peer, struct user *caller) {
  char uid[16];
  snprintf(uid, sizeof uid, "%lu", (unsigned long)peer->uid);
  if (!user_find(caller, uid)) _exit(1);
  caller->gid = caller->groups[0] = peer->gid;
}

static int block_all(void) {
  sigset_t all, child;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  return signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* ---- starting and watching the command ---- */

_Noreturn static void become_command(struct service *service, struct sudo_request *request, const struct user *caller,
                                     const char *path) {
  setpgid(0, 0);
  if (service->terminal >= 0 && request->flags & SUDO_FOREGROUND) tcsetpgrp(service->terminal, getpid());
  for (int i = 0; i < 3; i++)
    if (dup2(request->streams[i], i) < 0) _exit(1);
  if (request->cwd < 0 || fchdir(request->cwd) < 0) (void)!chdir("/");
  for (int number = 1; number < 64; number++)
    signal(number, request->ignored >> (number - 1) & 1 ? SIG_IGN : SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  sudo_become(request, caller, path);
}

static void start(struct service *service, struct sudo_request *request, const struct user *caller, const char *path) {
  if (request->terminal >= 0 && ioctl(request->terminal, TIOCSCTTY, 0) < 0) refuse(service, SUDO_MALFORMED);
  service->terminal = request->terminal;
  service->command = fork();
  if (service->command == 0) become_command(service, request, caller, path);
  if (service->command < 0) refuse(service, SUDO_BUSY);
  setpgid(service->command, service->command); /* parent and child both do this, because either may run first */
  for (int i = 0; i < 3; i++) close(request->streams[i]);
  if (request->cwd >= 0) close(request->cwd);
}

static void signal_command(const struct service *service, int number) {
  if (kill(-service->command, number) < 0) kill(service->command, number);
}

static void go_on(struct service *service, bool foreground) {
  if (service->terminal >= 0) {
    pid_t group = service->foreground > 0 ? service->foreground : service->command;
    if (!foreground || tcsetpgrp(service->terminal, group) < 0)
      tcsetpgrp(service->terminal, foreground ? service->command : getpgrp());
  }
  service->foreground = 0;
  signal_command(service, SIGCONT);
}

static void on_stopped(struct service *service, int number) {
  pid_t group = service->terminal >= 0 ? tcgetpgrp(service->terminal) : 0;
  service->foreground = group != getpgrp() ? group : 0;
  say(service, SUDO_STOPPED, (uint8_t)number);
}

/*
 * Reaps processes. Returns true if the command has ended. When this service ends, the command's background processes become
 * children of the agent.
 */
static bool reap(struct service *service, int *status) {
  struct signalfd_siginfo info;
  while (read(service->children, &info, sizeof info) > 0) continue;
  bool ended = false;
  int found;
  for (pid_t pid; (pid = waitpid(-1, &found, WNOHANG | WUNTRACED | __WALL)) > 0;) {
    if (pid != service->command) continue;
    if (WIFSTOPPED(found)) {
      on_stopped(service, WSTOPSIG(found));
      continue;
    }
    *status = found;
    ended = true;
  }
  return ended;
}

static void wait_for(int fd, int milliseconds) {
  struct pollfd wanted = {.fd = fd, .events = POLLIN};
  poll(&wanted, 1, milliseconds);
}

/* ---- ending the command ---- */

/* Ends a command whose client has disconnected. */
_Noreturn static void end_command(struct service *service) {
  static const int asked[] = {SIGHUP, SIGTERM, SIGCONT};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) signal_command(service, asked[i]);
  uint64_t begun = now_milliseconds(), passed = 0;
  for (; passed < KILL_MILLISECONDS; passed = now_milliseconds() - begun) {
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0) continue;
    if (pid < 0 && errno == ECHILD) break;
    if (passed >= GRACE_MILLISECONDS) descendants_signal(getpid(), SIGKILL);
    struct signalfd_siginfo info;
    wait_for(service->children, passed < GRACE_MILLISECONDS ? (int)(GRACE_MILLISECONDS - passed) : 50);
    (void)!read(service->children, &info, sizeof info);
  }
  _exit(0);
}

_Noreturn static void tell_end(struct service *service, int status) {
  if (WIFSIGNALED(status)) say(service, SUDO_KILLED, (uint8_t)WTERMSIG(status));
  else say(service, SUDO_EXITED, (uint8_t)WEXITSTATUS(status));
  /*
   * Waits until the client has read the remaining output: the command's terminal ends with this process, and unread output would be
   * lost.
   */
  char rest[64];
  shutdown(service->peer, SHUT_WR);
  uint64_t begun = now_milliseconds();
  if (service->terminal >= 0)
    for (uint64_t passed = 0; passed < FAREWELL_MILLISECONDS; passed = now_milliseconds() - begun) {
      wait_for(service->peer, (int)(FAREWELL_MILLISECONDS - passed));
      if (recv(service->peer, rest, sizeof rest, MSG_DONTWAIT) <= 0) break;
    }
  _exit(0);
}

static void hear(struct service *service) {
  uint8_t message[2];
  ssize_t got = recv(service->peer, message, sizeof message, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got != sizeof message) end_command(service);
  if (message[0] == SUDO_SIGNAL && message[1] >= 1 && message[1] <= 64) signal_command(service, message[1]);
  else if (message[0] == SUDO_CONTINUE) go_on(service, message[1]);
  else end_command(service);
}

void sudo_serve(const struct sudo_policy *policy, const struct sudo_peer *peer) {
  struct service service = {.peer = peer->fd, .terminal = -1, .children = block_all()};
  struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
  setsockopt(peer->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (!is_allowed(policy, peer)) refuse(&service, SUDO_NOT_ALLOWED);
  struct sudo_request request = {0};
  if (service.children < 0 || !sudo_receive(peer->fd, &request)) refuse(&service, SUDO_MALFORMED);
  if (request.flags & SUDO_ASK) {
    say(&service, SUDO_EXITED, 0);
    _exit(0);
  }
  struct user caller;
  find_caller(peer, &caller);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  start(&service, &request, &caller, policy->path);
  say(&service, SUDO_STARTED, 0);
  struct pollfd both[2] = {{.fd = service.children, .events = POLLIN}, {.fd = service.peer, .events = POLLIN}};
  for (int status;;) {
    poll(both, 2, -1);
    if (both[0].revents && reap(&service, &status)) tell_end(&service, status);
    if (both[1].revents) hear(&service);
  }
}
