// Run inside a sandbox by tests: tries what a sandbox must not be able to do and prints one `name errno` for each, 0 for
// what succeeded.
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
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

int main(void) {
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
  tell("socket-alg", socket(AF_ALG, SOCK_SEQPACKET, 0));
  tell("personality-query", personality(0xffffffff));
  tell("personality-odd", personality(0x0400000));
  tell("unknown-call", syscall(9999));
  return 0;
}
