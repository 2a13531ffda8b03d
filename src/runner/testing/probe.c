// Run inside a sandbox by tests: tries what a sandbox must not be able to do and prints one `name errno` for each, 0 for
// what succeeded. With `in-flight` it sends files to itself that nobody takes until the kernel gives it no more of them, says how
// many, and waits; with `in-flight-one` it sends a single one.
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void tell(const char *name, long result) { printf("%s %d\n", name, result < 0 ? errno : 0); }

// A clone that succeeds must not go on as a second probe.
static void tell_clone(const char *name, unsigned long flags) {
  long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) _exit(0);
  tell(name, pid);
  if (pid > 0) waitpid((pid_t)pid, NULL, 0);
}

// Hands its own standard output on to itself `count` times in one message. Answers as sendmsg(2).
static long send_files(int socket, int count) {
  union {
    struct cmsghdr head;
    char room[CMSG_SPACE(253 * sizeof(int))];
  } control = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN((size_t)count * sizeof(int))}};
  struct iovec byte = {.iov_base = "x", .iov_len = 1};
  struct msghdr message = {.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE((size_t)count * sizeof(int))};
  for (int i = 0; i < count; i++) ((int *)CMSG_DATA(&control.head))[i] = STDOUT_FILENO;
  return sendmsg(socket, &message, MSG_DONTWAIT);
}

static int fill(void) {
  long sent = 0;
  for (;;) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0) return 1;
    while (send_files(pair[0], 253) > 0) sent += 253;
    if (errno == ETOOMANYREFS) break;
    if (errno != EAGAIN) return 1;
  }
  printf("all that it may have: %ld\n", sent);
  fflush(stdout);
  return pause();
}

static int send_one(void) {
  int pair[2];
  tell("in-flight-one", socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0 ? -1 : send_files(pair[0], 1));
  return 0;
}

int main(int count, char **arg) {
  if (count > 1) return strcmp(arg[1], "in-flight") ? send_one() : fill();
  int zeroes[16] = {0};
  tell("mount", mount("none", "/tmp", "tmpfs", 0, NULL));
  tell("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
  tell("setns", setns(0, 0));
  tell("unshare-user", unshare(CLONE_NEWUSER));
  tell("unshare-net", unshare(CLONE_NEWNET));
  tell("unshare-files", unshare(CLONE_FILES));
  tell_clone("clone-user", CLONE_NEWUSER);
  tell_clone("clone-plain", 0);
  tell("clone3", syscall(SYS_clone3, zeroes, sizeof zeroes));
  tell("bpf", syscall(SYS_bpf, 0, zeroes, sizeof zeroes));
  tell("keyctl", syscall(SYS_keyctl, 0, 0, 0, 0, 0));
  tell("io_uring_setup", syscall(SYS_io_uring_setup, 1, zeroes));
  tell("userfaultfd", syscall(SYS_userfaultfd, 1));
  tell("perf_event_open", syscall(SYS_perf_event_open, zeroes, 0, -1, -1, 0));
  tell("socket-unix", socket(AF_UNIX, SOCK_STREAM, 0));
  tell("socket-inet", socket(AF_INET, SOCK_STREAM, 0));
  tell("socket-vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
  tell("netlink-routes", socket(AF_NETLINK, SOCK_RAW, 0));
  tell("netlink-sockets", socket(AF_NETLINK, SOCK_RAW, 4));
  tell("netlink-unused", socket(AF_NETLINK, SOCK_RAW, 1));
  tell("netlink-audit", socket(AF_NETLINK, SOCK_RAW, 9));
  tell("netlink-devices", socket(AF_NETLINK, SOCK_RAW, 15));
  tell("netlink-filters", socket(AF_NETLINK, SOCK_RAW, 12));
  tell("socket-alg", socket(AF_ALG, SOCK_SEQPACKET, 0));
  tell("personality-query", personality(0xffffffff));
  tell("personality-odd", personality(0x0400000));
  tell("unknown-call", syscall(9999));
  return 0;
}
