// Runs inside a sandbox in tests: tries what a sandbox must not be able to do and prints one `name errno` per attempt, 0 for
// success. Arguments select other work:
// `in-flight`: sends files to itself without receiving them, up to the kernel's limit, prints how many, and waits.
// `in-flight-one`: sends a single file.
// `echoes`: prints how many MiB of ping replies it can leave unread, and whether a small ping still works.
// `calls` with numbers such as 54,3,1,51: makes these system calls.
// `calls-32` with such numbers: makes them by the table of 32-bit programs.
// `x32`: makes a call of the table of x32.
// `rename FROM TO` and `attribute PATH NAME VALUE`: calls rename(2) or lsetxattr(2).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static void tell(const char *name, long result) { printf("%s %d\n", name, result < 0 ? errno : 0); }

// If a clone succeeds, its child must end here. Otherwise it would continue as a second probe.
static void tell_clone(const char *name, unsigned long flags) {
  long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) _exit(0);
  tell(name, pid);
  if (pid > 0) waitpid((pid_t)pid, NULL, 0);
}

// Sends the program's standard output to itself `count` times, in one message. Returns the result of sendmsg(2).
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

static int ping_socket(void) {
  int one = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP), most = 1 << 30;
  struct sockaddr_in local = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct timeval patience = {.tv_sec = 1};
  setsockopt(one, SOL_SOCKET, SO_RCVBUF, &most, sizeof most);
  setsockopt(one, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return connect(one, (struct sockaddr *)&local, sizeof local) < 0 ? -1 : one;
}

// Disconnects each socket when its buffer is full. The socket is then in no table of the kernel.
static int leave_echoes(void) {
  static char ask[60000] = {8};
  unsigned long held = 0;
  for (int i = 0; i < 20; i++) {
    int one = ping_socket();
    for (int n = 0; n < 200; n++) send(one, ask, sizeof ask, MSG_DONTWAIT);
    struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    connect(one, &nobody, sizeof nobody);
    unsigned memory[9] = {0};
    socklen_t size = sizeof memory;
    getsockopt(one, SOL_SOCKET, SO_MEMINFO, memory, &size);
    held += memory[0];
  }
  int one = ping_socket(), tries = 0;
  char answer[64];
  while (tries++ < 20 && (send(one, ask, sizeof answer, 0) < 0 || recv(one, answer, sizeof answer, 0) < 0)) {}
  printf("held %lu\nsmall %d\n", held >> 20, tries <= 20);
  return 0;
}

// Sends a message and requests its send timestamp, which the kernel returns together with the message. Returns how many bytes
// then wait in the socket.
static unsigned kept_for_timestamp(void) {
  struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  union {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
  } control = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SO_TIMESTAMPING, .cmsg_len = CMSG_LEN(sizeof(int))}};
  *(int *)CMSG_DATA(&control.head) = 2; // SOF_TIMESTAMPING_TX_SOFTWARE
  struct iovec byte = {.iov_base = "x", .iov_len = 1};
  struct msghdr message = {.msg_name = &local, .msg_namelen = sizeof local, .msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(sizeof(int))};
  int udp = socket(AF_INET, SOCK_DGRAM, 0);
  if (sendmsg(udp, &message, 0) < 0) return 0;
  unsigned memory[9] = {0};
  socklen_t size = sizeof memory;
  getsockopt(udp, SOL_SOCKET, SO_MEMINFO, memory, &size);
  return memory[0];
}

// Tries calls that the filter refuses because of their arguments. Tries them also with the upper 32 bits set, which the kernel
// ignores.
static void tell_arguments(void) {
  int pair[2], on = 1, kept = 0;
  socklen_t size = sizeof kept;
  const long upper = 1L << 32;
  tell("pair-unix", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  tell("pair-vsock", socketpair(AF_VSOCK, SOCK_STREAM, 0, pair));
  tell("pair-vsock-upper-half", syscall(SYS_socketpair, upper | AF_VSOCK, SOCK_STREAM, 0, pair));
  tell("socket-mptcp", socket(AF_INET, SOCK_STREAM, 262));
  tell("socket-udplite", socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDPLITE));
  tell("socket-seqpacket", socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP));
  tell("socket-raw", socket(AF_INET, SOCK_RAW, IPPROTO_RAW));
  tell("socket-ping", socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
  int udp = socket(AF_INET, SOCK_DGRAM, IPPROTO_UDP);
  struct sock_filter all = {.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW};
  struct sock_fprog filter = {.len = 1, .filter = &all};
  tell("option-plain", setsockopt(udp, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
  tell("option-filter", setsockopt(udp, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter));
  tell("option-filter-upper-half", syscall(SYS_setsockopt, udp, upper | SOL_SOCKET, upper | SO_ATTACH_FILTER, &filter, sizeof filter));
  tell("option-timestamping", setsockopt(udp, SOL_SOCKET, SO_TIMESTAMPING, &on, sizeof on));
  tell("option-errors", setsockopt(udp, IPPROTO_IP, IP_RECVERR, &on, sizeof on));
  getsockopt(udp, IPPROTO_IP, IP_RECVERR, &kept, &size);
  printf("errors-kept %d\n", kept);
  printf("timestamp-kept %u\n", kept_for_timestamp());
  tell("huge-mmap", mmap(NULL, 1 << 21, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0) == MAP_FAILED ? -1 : 0);
  tell("huge-memfd", memfd_create("huge", MFD_HUGETLB));
  tell("huge-shm", shmget(IPC_PRIVATE, 1 << 21, IPC_CREAT | SHM_HUGETLB | 0600));
  tell("init-limits", prlimit(1, RLIMIT_CORE, NULL, &(struct rlimit){0}));
  tell("init-priority", setpriority(PRIO_PROCESS, 1, 0));
  tell("init-group-priority", setpriority(PRIO_PGRP, 1, 0));
  tell("init-scheduler", sched_setscheduler(1, SCHED_OTHER, &(struct sched_param){0}));
  tell("init-affinity", sched_setaffinity(1, sizeof(cpu_set_t), &(cpu_set_t){.__bits = {1}}));
  tell("init-input-and-output", syscall(SYS_ioprio_set, 1, 1, 0));
  tell("init-user-priority", setpriority(PRIO_USER, 0, 0));
  tell("init-user-input-and-output", syscall(SYS_ioprio_set, 3, 0, 0));
  tell("own-limits", prlimit(0, RLIMIT_CORE, NULL, &(struct rlimit){0}));
  tell("own-priority", setpriority(PRIO_PROCESS, 0, 0));
  tell("filter-with-listener", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter));
  tell("filter-plain", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter));
}

// Tries calls that the filter refuses because no sandbox would be charged for their kernel memory.
static void tell_bounds(void) {
  static char value[1008];
  static struct pollfd polled[2049];
  static unsigned long set[64];
  struct timeval none = {0};
  int file = memfd_create("file", 0), tcp = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  struct tcp_md5sig key = {.tcpm_keylen = 1};
  struct sockaddr_in peer = {.sin_family = AF_INET};
  for (int n = 0; n < 2049; n++) polled[n].fd = -1;
  memcpy(&key.tcpm_addr, &peer, sizeof peer);
  tell("attribute-most", fsetxattr(file, "user.a", value, 1004, 0));
  tell("attribute-more", fsetxattr(file, "user.b", value, 1005, 0));
  tell("attribute-newer-call", syscall(463, file, "", AT_EMPTY_PATH, "user.c", value, 16));
  tell("poll-most", poll(polled, 2048, 0));
  tell("poll-more", poll(polled, 2049, 0));
  tell("select-most", select(2048, (fd_set *)set, NULL, NULL, &none));
  tell("select-more", select(2049, (fd_set *)set, NULL, NULL, &none));
  tell("tcp-key", setsockopt(tcp, IPPROTO_TCP, TCP_MD5SIG, &key, sizeof key));
  tell("tcp-upper", setsockopt(tcp, IPPROTO_TCP, TCP_ULP, "tls", 4));
  tell("tcp-plain", setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
  tell("aio", syscall(SYS_io_setup, 1, &(unsigned long){0}));
#ifdef SYS_modify_ldt
  tell("segments", syscall(SYS_modify_ldt, 0, value, 8));
#else
  errno = ENOSYS;
  tell("segments", -1);
#endif
}

#ifdef __x86_64__
// Makes a call by its number in the table of 32-bit programs, which 64-bit programs can use too.
static long call_32(const long *number) {
  long result;
  register long sixth __asm__("r9") = number[6];
  __asm__ volatile(
      "push %%rbp\n\tmov %%r9, %%rbp\n\tint $0x80\n\tpop %%rbp"
      : "=a"(result)
      : "a"(number[0]), "b"(number[1]), "c"(number[2]), "d"(number[3]), "S"(number[4]), "D"(number[5]), "r"(sixth)
      : "memory", "r8", "r10", "r11");
  if (result < 0 && result > -4096) {
    errno = (int)-result;
    return -1;
  }
  return result;
}

// Makes an x32 call in a child process, because the kernel may kill the process that makes it.
static int call_x32(void) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) _exit(syscall(0x40000000 + SYS_getpid) > 0 ? 0 : 1);
  int status = 0;
  waitpid(pid, &status, 0);
  printf("x32 %s\n", WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "answered" : "refused");
  return 0;
}
#else
static long call_32(const long *number) {
  (void)number;
  errno = ENOSYS;
  return -1;
}
static int call_x32(void) { return 1; }
#endif

// Makes the given calls. Each text is a list of numbers: that of the call, and then its arguments. Descriptor 3 is a TCP socket
// in each call.
static int make_calls(char **given, int is_32) {
  dup2(socket(AF_INET, SOCK_STREAM, 0), 3);
  for (; *given; given++) {
    long number[7] = {0};
    char *rest = *given;
    for (int n = 0; n < 7 && *rest; n++) {
      number[n] = strtol(rest, &rest, 10);
      if (*rest == ',') rest++;
    }
    tell(*given, is_32 ? call_32(number) : syscall(number[0], number[1], number[2], number[3], number[4], number[5], number[6]));
  }
  return 0;
}

int main(int count, char **arg) {
  if (count > 1 && strcmp(arg[1], "calls") == 0) return make_calls(arg + 2, 0);
  if (count > 1 && strcmp(arg[1], "calls-32") == 0) return make_calls(arg + 2, 1);
  if (count > 1 && strcmp(arg[1], "x32") == 0) return call_x32();
  if (count > 3 && strcmp(arg[1], "rename") == 0) {
    tell("rename", rename(arg[2], arg[3]));
    return 0;
  }
  if (count > 4 && strcmp(arg[1], "attribute") == 0) {
    tell("attribute", lsetxattr(arg[2], arg[3], arg[4], strlen(arg[4]), 0));
    return 0;
  }
  if (count > 1 && strcmp(arg[1], "echoes") == 0) return leave_echoes();
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
  tell_arguments();
  tell_bounds();
  return 0;
}
