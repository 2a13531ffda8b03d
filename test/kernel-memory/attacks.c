// Runs inside a sandbox: makes kernel objects of one kind and holds them until it is killed.
//
//   attacks NAME SECONDS
//
// It stops making objects after SECONDS, or when the kernel refuses, or at a number that keeps every attack below about
// 300 MiB. Then it prints one line, `NAME MADE ERRNO`, and sleeps. Its output is not trusted: attacks.ts measures from
// outside.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static struct timespec deadline;

static int has_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec < deadline.tv_sec || (now.tv_sec == deadline.tv_sec && now.tv_nsec < deadline.tv_nsec);
}

// Makes an access control list of at most `most` bytes in the kernel's format (linux/posix_acl_xattr.h).
static size_t make_acl(unsigned char *into, size_t most) {
  struct entry {
    uint16_t tag, permissions;
    uint32_t id;
  };
  const uint16_t owner = 1, user = 2, group = 4, mask = 16, other = 32;
  size_t count = (most - 4) / sizeof(struct entry);
  struct entry *entries = (struct entry *)(into + 4);
  *(uint32_t *)into = 2;
  entries[0] = (struct entry){owner, 7, -1u};
  for (size_t n = 1; n < count - 3; n++) entries[n] = (struct entry){user, 7, (uint32_t)n};
  entries[count - 3] = (struct entry){group, 7, -1u};
  entries[count - 2] = (struct entry){mask, 7, -1u};
  entries[count - 1] = (struct entry){other, 7, -1u};
  return 4 + count * sizeof(struct entry);
}

static unsigned char acl[65536] __attribute__((aligned(8)));
static const char *access_list = "system.posix_acl_access", *default_list = "system.posix_acl_default";

// Finds the largest size that the file system and the seccomp filter accept.
static size_t largest_acl(int fd) {
  for (size_t size = sizeof acl; size >= 64; size -= 64)
    if (fsetxattr(fd, access_list, acl, make_acl(acl, size), 0) == 0) return make_acl(acl, size);
  return 0;
}

static long acl_on_directories(const char *where, long most) {
  char path[128];
  size_t size = 0;
  for (long made = 0;; made++) {
    snprintf(path, sizeof path, "%s/acl-%ld", where, made);
    if (made == most || !has_time() || mkdir(path, 0755) < 0) return made;
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return made;
    if (made == 0) size = largest_acl(fd);
    if (size == 0) return 0;
    if (fsetxattr(fd, access_list, acl, size, 0) < 0 || fsetxattr(fd, default_list, acl, size, 0) < 0) return made;
    if (strncmp(where, "/dev", 4) == 0) close(fd);
  }
}

static long acl_shm(void) { return acl_on_directories("/dev/shm", 1200); }
static long acl_disk(void) { return acl_on_directories("/tmp", 8000); }

static long acl_memfd(void) {
  size_t size = 0;
  for (long made = 0;; made++) {
    int fd = memfd_create("acl", 0);
    if (made == 2000 || !has_time() || fd < 0) return made;
    if (made == 0) size = largest_acl(fd);
    if (size == 0 || fsetxattr(fd, access_list, acl, size, 0) < 0) return made;
  }
}

// The newer system call reads the size from memory, where a seccomp filter cannot see it.
static long acl_memfd_at(void) {
  struct {
    uint64_t value;
    uint32_t size, flags;
  } given = {(uintptr_t)acl, (uint32_t)make_acl(acl, sizeof acl), 0};
  for (long made = 0;; made++) {
    int fd = memfd_create("acl", 0);
    if (made == 2000 || !has_time() || fd < 0) return made;
    if (syscall(463, fd, "", AT_EMPTY_PATH, access_list, &given, sizeof given) < 0) return made;
  }
}

static long user_attributes(void) {
  static char value[1000];
  char name[32];
  for (long made = 0;; made++) {
    int fd = memfd_create("attributes", 0);
    if (made == 60000 || !has_time() || fd < 0) return made;
    for (int n = 0; n < 16; n++) {
      snprintf(name, sizeof name, "user.%d", n);
      if (fsetxattr(fd, name, value, sizeof value, 0) < 0) return made;
    }
  }
}

static long aio_polls(void) {
  static struct iocb request;
  aio_context_t context = 0;
  int ends[2];
  if (pipe(ends) < 0) return 0;
  if (syscall(SYS_io_setup, 1000000, &context) < 0) return 0;
  request = (struct iocb){.aio_lio_opcode = IOCB_CMD_POLL, .aio_fildes = (uint32_t)ends[0], .aio_buf = POLLIN};
  struct iocb *list = &request;
  for (long made = 0;; made++)
    if (made == 1000000 || ((made & 255) == 0 && !has_time()) || syscall(SYS_io_submit, context, 1, &list) < 0) return made;
}

static long aio_contexts(void) {
  for (long made = 0;; made++) {
    aio_context_t context = 0;
    if (made == 20000 || !has_time() || syscall(SYS_io_setup, 1, &context) < 0) return made;
  }
}

static long in_threads(long most, void *(*run)(void *), void *given) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  for (long made = 0;; made++) {
    pthread_t thread;
    if (made == most || !has_time() || (errno = pthread_create(&thread, &small, run, given)) != 0) {
      usleep(300000); // by then the last objects have allocated their memory
      return made;
    }
  }
}

static long most_polled;

static void *poll_many(void *list) {
  poll(list, (nfds_t)most_polled, -1);
  return NULL;
}

static long poll_tables(void) {
  static struct pollfd list[65536];
  int ends[2];
  if (pipe(ends) < 0) return 0;
  for (int n = 0; n < 65536; n++) list[n] = (struct pollfd){.fd = ends[0], .events = POLLIN};
  for (most_polled = 65536; most_polled > 16; most_polled /= 2)
    if (poll(list, (nfds_t)most_polled, 0) >= 0) break;
  return in_threads(65536 / most_polled * 15, poll_many, list);
}

static void *select_many(void *set) {
  unsigned long mine[1024];
  memcpy(mine, set, sizeof mine);
  syscall(SYS_select, most_polled, mine, NULL, NULL, NULL);
  return NULL;
}

static long select_tables(void) {
  static unsigned long set[1024], now[1024];
  int ends[2];
  if (pipe(ends) < 0) return 0;
  while (dup(ends[0]) >= 0) {}
  for (int fd = 0; fd < 65536; fd++)
    if (fd > 2 && fd != ends[1] && fcntl(fd, F_GETFD) >= 0) set[fd / 64] |= 1UL << fd % 64;
  struct timeval none = {0};
  for (most_polled = 65536; most_polled > 16; most_polled /= 2) {
    memcpy(now, set, sizeof now);
    if (syscall(SYS_select, most_polled, now, NULL, NULL, &none) >= 0) break;
  }
  return in_threads(65536 / most_polled * 15, select_many, set);
}

static struct iovec pieces[1024];
static int silent[2];

static void *read_pieces(void *nothing) {
  readv(silent[0], pieces, 1024);
  return nothing;
}

static long blocked_readers(void) {
  static char byte;
  if (pipe(silent) < 0) return 0;
  for (int n = 0; n < 1024; n++) pieces[n] = (struct iovec){&byte, 1};
  return in_threads(900, read_pieces, NULL);
}

static void *open_fifo(void *path) {
  return (void *)(intptr_t)open(path, O_RDONLY);
}

static long blocked_opens(void) {
  mkfifo("/tmp/fifo", 0600);
  return in_threads(900, open_fifo, "/tmp/fifo");
}

// Each open overlay directory caches a list of its names. After a change, the next reader gets a separate list.
static long list_again(int names, long most, useconds_t pause) {
  char name[256];
  for (int n = 0; n < names; n++) {
    snprintf(name, sizeof name, "/tmp/%0200d", n);
    int fd = open(name, O_CREAT | O_WRONLY, 0600);
    if (fd < 0) return 0;
    close(fd);
  }
  static char buffer[65536];
  for (long made = 0;; made++) {
    int fd = open("/tmp", O_RDONLY | O_DIRECTORY);
    if (made == most || !has_time() || fd < 0) return made;
    while (syscall(SYS_getdents64, fd, buffer, sizeof buffer) > 0) {}
    if (mkdir("/tmp/change", 0700) < 0 || rmdir("/tmp/change") < 0) return made;
    usleep(pause);
  }
}

// The pause makes the attack last some seconds on a fast machine too.
static long directory_lists(void) { return list_again(2000, 600, 10000); }
// Like directory_lists, but uses only about 1 MiB more per second.
static long directory_lists_slowly(void) { return list_again(200, 3000, 100000); }

static int listen_everywhere(int port, int backlog) {
  int listener = socket(AF_INET6, SOCK_STREAM, 0);
  struct sockaddr_in6 here = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
  if (listener < 0 || bind(listener, (struct sockaddr *)&here, sizeof here) < 0 || listen(listener, backlog) < 0) return -1;
  return listener;
}

static int listen_on(int port, int backlog) {
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (listener < 0 || bind(listener, (struct sockaddr *)&here, sizeof here) < 0 || listen(listener, backlog) < 0) return -1;
  return listener;
}

static long leave_unaccepted(size_t bytes, long most, int (*listen_at)(int port, int backlog)) {
  static char data[65536];
  long made = 0;
  for (int port = 2000; made < most && has_time(); port++) {
    if (listen_at(port, 4096) < 0) return made;
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int n = 0; n < 4000 && made < most && has_time(); n++, made++) {
      int one = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
      if (one < 0 || (connect(one, (struct sockaddr *)&there, sizeof there) < 0 && errno != EINPROGRESS)) return made;
      for (size_t sent = 0; sent < bytes; sent += sizeof data)
        if (send(one, data, sizeof data, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) break;
      close(one);
    }
  }
  return made;
}

static long tcp_unaccepted(void) { return leave_unaccepted(0, 60000, listen_on); }
static long tcp_unaccepted_data(void) { return leave_unaccepted(131072, 2500, listen_on); }
// The IPv6 listener accepts IPv4 connections too.
static long tcp6_unaccepted_data(void) { return leave_unaccepted(131072, 2500, listen_everywhere); }

static ssize_t send_to_itself(int one, const void *data, size_t size, int flags) {
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  return sendto(one, data, size, flags | MSG_DONTWAIT, (struct sockaddr *)&there, sizeof there);
}

static long udp_unsent(void) {
  static char data[60000];
  for (long made = 0;; made++) {
    int one = socket(AF_INET, SOCK_DGRAM, 0);
    if (made == 4500 || !has_time() || one < 0) return made;
    if (send_to_itself(one, data, sizeof data, MSG_MORE) < 0) return made;
  }
}

static long ping_answers(void) {
  static char echo[60000] = {8};
  for (long made = 0;; made++) {
    int one = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
    if (made == 1500 || !has_time() || one < 0) return made;
    for (int n = 0; n < 3; n++)
      if (send_to_itself(one, echo, sizeof echo, 0) < 0) return made;
  }
}

static long tcp_keys(void) {
  struct tcp_md5sig key = {.tcpm_keylen = TCP_MD5SIG_MAXKEYLEN};
  struct sockaddr_in *peer = (struct sockaddr_in *)&key.tcpm_addr;
  peer->sin_family = AF_INET;
  for (long made = 0; made < 2000 && has_time();) {
    int one = socket(AF_INET, SOCK_STREAM, 0);
    if (one < 0) return made;
    for (uint32_t n = 1; n < 600; n++) {
      peer->sin_addr.s_addr = htonl(n);
      if (setsockopt(one, IPPROTO_TCP, TCP_MD5SIG, &key, sizeof key) < 0) {
        if (n == 1) return made;
        break;
      }
    }
    made++;
  }
  return 2000;
}

static long multicast_groups(void) {
  uint32_t group = 0xe0010000;
  for (long made = 0;; made++) {
    int one = socket(AF_INET, SOCK_DGRAM, 0);
    if (made == 20000 || !has_time() || one < 0) return made;
    for (int n = 0; n < 20; n++) {
      struct ip_mreqn wanted = {.imr_multiaddr.s_addr = htonl(group++), .imr_address.s_addr = htonl(INADDR_LOOPBACK)};
      if (setsockopt(one, IPPROTO_IP, IP_ADD_MEMBERSHIP, &wanted, sizeof wanted) < 0) return made;
    }
  }
}

static long reuseport_groups(void) {
  int on = 1;
  for (long made = 0;; made++) {
    int one = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(2000 + made)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (made == 60000 || !has_time() || one < 0) return made;
    setsockopt(one, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (bind(one, (struct sockaddr *)&here, sizeof here) < 0) return made;
  }
}

static long time_waits(void) {
  int listener = listen_on(2000, 128);
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(2000), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  for (long made = 0;; made++) {
    int one = socket(AF_INET, SOCK_STREAM, 0);
    if (made == 60000 || !has_time() || one < 0 || connect(one, (struct sockaddr *)&there, sizeof there) < 0) return made;
    int other = accept(listener, NULL, NULL);
    close(one);
    close(other);
  }
}

static long udp_queues(void) {
  static char data[60000];
  for (long made = 0;; made++) {
    int one = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    if (made == 1500 || !has_time() || one < 0 || bind(one, (struct sockaddr *)&here, size) < 0) return made;
    getsockname(one, (struct sockaddr *)&here, &size);
    for (int n = 0; n < 4; n++) sendto(one, data, sizeof data, MSG_DONTWAIT, (struct sockaddr *)&here, size);
  }
}

static long ask_routes(size_t padding, int is_read_on) {
  static char message[1 << 20];
  struct {
    struct nlmsghdr head;
    struct rtgenmsg body;
  } *ask = (void *)message;
  ask->head = (struct nlmsghdr){.nlmsg_len = (uint32_t)(sizeof *ask + padding), .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP};
  for (long made = 0;; made++) {
    int one = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), least = 1;
    if (made == 1000 || !has_time() || one < 0) return made;
    if (is_read_on) setsockopt(one, SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
    for (int n = 0; n < (is_read_on ? 1 : 200); n++)
      if (send(one, message, ask->head.nlmsg_len, MSG_DONTWAIT) < 0) break;
  }
}

static long netlink_answers(void) { return ask_routes(0, 0); }
static long netlink_questions(void) { return ask_routes(190000, 1); }

static long terminals(void) {
  static char text[4096];
  memset(text, 'x', sizeof text);
  for (long made = 0;; made++) {
    int ours = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK), unlocked = 0;
    if (made == 300 || !has_time() || ours < 0 || ioctl(ours, TIOCSPTLCK, &unlocked) < 0) return made;
    int theirs = ioctl(ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_NONBLOCK);
    if (theirs < 0) return made;
    ioctl(theirs, TCFLSH, 0);
    struct { unsigned in, out, control, local; unsigned char rest[64]; } raw;
    if (ioctl(theirs, 0x5401, &raw) == 0) { raw.in = raw.out = raw.local = 0; ioctl(theirs, 0x5402, &raw); }
    for (int n = 0; n < 400; n++) {
      ssize_t a = write(ours, text, sizeof text), b = write(theirs, text, sizeof text);
      if (a < 0 && b < 0) break;
    }
  }
}

static long seccomp_filters(void) {
  static struct sock_filter code[4096];
  for (int n = 0; n < 4095; n++) code[n] = (struct sock_filter){BPF_LD | BPF_W | BPF_ABS, 0, 0, 0};
  code[4095] = (struct sock_filter){BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  struct sock_fprog filter = {.len = 4096, .filter = code};
  for (long made = 0;; made++) {
    if (made == 600 || !has_time()) return made;
    int told[2];
    if (pipe(told) < 0) return made;
    pid_t child = fork();
    if (child < 0) return made;
    if (child == 0) {
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
      for (int n = 0; n < 7; n++) syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
      if (write(told[1], "x", 1) < 0) _exit(1);
      for (;;) pause();
    }
    char answer;
    if (read(told[0], &answer, 1) != 1) return made;
    close(told[0]);
    close(told[1]);
  }
}

static long descriptors(void) {
  for (long made = 0;; made++) {
    int one;
    switch (made % 5) {
    case 0: one = timerfd_create(CLOCK_MONOTONIC, 0); break;
    case 1: one = eventfd(0, 0); break;
    case 2: one = epoll_create1(0); break;
    case 3: one = (int)syscall(SYS_pidfd_open, getpid(), 0); break;
    default: one = inotify_init();
    }
    if (made == 65000 || !has_time() || one < 0) return made;
  }
}

static long watches(void) {
  int one = inotify_init(), poller = epoll_create1(0);
  char path[64];
  for (long made = 0;; made++) {
    snprintf(path, sizeof path, "/dev/shm/w%ld", made);
    int fd = open(path, O_CREAT | O_RDWR, 0600), event = eventfd(0, 0);
    if (made == 30000 || !has_time() || fd < 0 || event < 0) return made;
    close(fd);
    if (inotify_add_watch(one, path, IN_ALL_EVENTS) < 0) return made;
    if (epoll_ctl(poller, EPOLL_CTL_ADD, event, &(struct epoll_event){.events = EPOLLIN}) < 0) return made;
  }
}

static long inotify_events(void) {
  int one = inotify_init();
  mkdir("/tmp/events", 0700);
  inotify_add_watch(one, "/tmp/events", IN_ALL_EVENTS);
  for (long made = 0;; made++) {
    if (made == 100000 || !has_time() || mkdir("/tmp/events/x", 0700) < 0 || rmdir("/tmp/events/x") < 0) return made;
    if (made % 6000 == 5999) {
      one = inotify_init();
      inotify_add_watch(one, "/tmp/events", IN_ALL_EVENTS);
    }
  }
}

static long locks(void) {
  int fd = open("/tmp/locked", O_CREAT | O_RDWR, 0600);
  struct flock lock = {.l_type = F_WRLCK, .l_len = 1};
  for (long made = 0;; made++) {
    lock.l_start = made * 2;
    if (made == 30000 || !has_time() || fcntl(fd, F_SETLK, &lock) < 0) return made;
    if (made % 10 == 0) {
      int own = open("/tmp/locked", O_RDWR);
      if (own < 0 || flock(own, LOCK_SH) < 0) return made;
    }
  }
}

static long leases(void) {
  char path[64];
  for (long made = 0;; made++) {
    snprintf(path, sizeof path, "/tmp/lease-%ld", made);
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    if (made == 20000 || !has_time() || fd < 0) return made;
    if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0 || fcntl(fd, F_SETOWN, getpid()) < 0) return made;
  }
}

static long pipes(void) {
  static char data[1 << 20];
  for (long made = 0;; made++) {
    int ends[2];
    if (made == 200 || !has_time() || pipe2(ends, O_NONBLOCK) < 0) return made;
    fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
    if (write(ends[1], data, sizeof data) < 0) return made;
  }
}

static long unix_queues(void) {
  static char data[150000];
  for (long made = 0;; made++) {
    int pair[2];
    if (made == 1000 || !has_time() || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0) return made;
    send(pair[0], data, sizeof data, MSG_DONTWAIT);
  }
}

static long passed_descriptors(void) {
  union {
    struct cmsghdr head;
    char room[CMSG_SPACE(253 * sizeof(int))];
  } control;
  struct iovec byte = {"x", 1};
  for (long made = 0;; made++) {
    int pair[2];
    if (made == 20000 || !has_time() || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0) return made;
    memset(&control, 0, sizeof control);
    control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(253 * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    for (int n = 0; n < 253; n++) ((int *)CMSG_DATA(&control.head))[n] = pair[n & 1];
    struct msghdr message = {.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    while (sendmsg(pair[0], &message, MSG_DONTWAIT) > 0) {}
    if (errno != EAGAIN) return made;
  }
}

static long unix_names(void) {
  for (long made = 0;; made++) {
    int one = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "%0100ld", made);
    if (made == 60000 || !has_time() || one < 0 || bind(one, (struct sockaddr *)&name, sizeof name) < 0) return made;
  }
}

static long system_v(void) {
  static struct { long type; char text[8000]; } message = {.type = 1};
  for (long made = 0;; made++) {
    if (made == 20000 || !has_time()) return made;
    if (shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) < 0 && made > 4000) return made;
    semget(IPC_PRIVATE, 250, IPC_CREAT | 0600);
    int queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    if (queue >= 0) msgsnd(queue, &message, sizeof message.text, IPC_NOWAIT);
  }
}

static long message_queues(void) {
  char name[32];
  static char text[8192];
  struct mq_attr size = {.mq_maxmsg = 10, .mq_msgsize = sizeof text};
  for (long made = 0;; made++) {
    snprintf(name, sizeof name, "/q%ld", made);
    mqd_t one = mq_open(name, O_CREAT | O_RDWR | O_NONBLOCK, 0600, &size);
    if (made == 3000 || !has_time() || one < 0) return made;
    for (unsigned n = 0; n < 10; n++) mq_send(one, text, sizeof text, n);
  }
}

static long timers(void) {
  struct sigevent none = {.sigev_notify = SIGEV_NONE};
  for (long made = 0;; made++) {
    timer_t one;
    if (made == 300000 || ((made & 63) == 0 && !has_time()) || timer_create(CLOCK_MONOTONIC, &none, &one) < 0) return made;
  }
}

static long queued_signals(void) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGRTMIN);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  for (long made = 0;; made++)
    if (made == 500000 || ((made & 63) == 0 && !has_time()) || sigqueue(getpid(), SIGRTMIN, (union sigval){0}) < 0) return made;
}

static long page_tables(void) {
  char *all = mmap(NULL, 1UL << 40, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  for (long made = 0;; made++) {
    if (made == 30000 || !has_time() || all == MAP_FAILED) return made;
    volatile char read = all[(size_t)made << 21];
    (void)read;
  }
}

static long areas(void) {
  for (long made = 0;; made++)
    if (made == 60000 || !has_time() || mmap(NULL, 4096, made & 1 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) return made;
}

static long missing_names(void) {
  char path[256];
  struct stat found;
  for (long made = 0;; made++) {
    snprintf(path, sizeof path, "/tmp/%0200ld", 1000000 + made);
    if (made == 300000 || ((made & 63) == 0 && !has_time())) return made;
    stat(path, &found);
  }
}

static long landlock_rules(void) {
  uint64_t handled[2] = {0x1fff, 0};
  for (long made = 0;; made++) {
    int one = (int)syscall(SYS_landlock_create_ruleset, handled, 8, 0);
    if (made == 1000 || !has_time() || one < 0) return made;
    for (int n = 0; n < 30; n++) {
      char path[64];
      snprintf(path, sizeof path, "/tmp/ll-%d", n);
      mkdir(path, 0700);
      struct { uint64_t access; int32_t fd; } __attribute__((packed)) rule = {4, open(path, O_PATH | O_CLOEXEC)};
      syscall(SYS_landlock_add_rule, one, 1, &rule, 0);
      close(rule.fd);
    }
  }
}

static long local_tables(void) {
  struct { unsigned number, base, limit, rest; } entry = {.base = 0, .limit = 1, .rest = 1};
#ifdef SYS_modify_ldt
  for (long made = 0;; made++) {
    int told[2];
    if (made == 600 || !has_time() || pipe(told) < 0) return made;
    pid_t child = fork();
    if (child < 0) return made;
    if (child == 0) {
      entry.number = 8191;
      long done = syscall(SYS_modify_ldt, 1, &entry, sizeof entry);
      if (write(told[1], &done, 1) < 0) _exit(1);
      for (;;) pause();
    }
    char answer;
    if (read(told[0], &answer, 1) != 1) return made;
    close(told[0]);
    close(told[1]);
  }
#endif
  (void)entry;
  return 0;
}

static long groups(void) {
  static gid_t list[65536];
  for (int n = 0; n < 65536; n++) list[n] = (gid_t)n;
  for (long made = 0;; made++) {
    int told[2];
    if (made == 400 || !has_time() || pipe(told) < 0) return made;
    pid_t child = fork();
    if (child < 0) return made;
    if (child == 0) {
      syscall(SYS_setgroups, 65536, list);
      if (write(told[1], "x", 1) < 0) _exit(1);
      for (;;) pause();
    }
    char answer;
    if (read(told[0], &answer, 1) != 1) return made;
    close(told[0]);
    close(told[1]);
  }
}

static long file_extents(void) {
  int fd = open("/tmp/extents", O_CREAT | O_RDWR, 0600);
  for (long made = 0;; made++) {
    if (made == 50000 || ((made & 63) == 0 && !has_time())) {
      fsync(fd);
      return made;
    }
    if (pwrite(fd, "x", 1, made * 16384) < 0) return made;
  }
}

static void *wait_for_many(void *list) {
  syscall(449, list, 128, 0, NULL, CLOCK_MONOTONIC); // futex_waitv
  return NULL;
}

static long futex_vectors(void) {
  static uint32_t words[128];
  static struct {
    uint64_t value, address;
    uint32_t flags, reserved;
  } list[128];
  for (int n = 0; n < 128; n++) list[n].address = (uintptr_t)&words[n], list[n].flags = 2 | 128;
  return in_threads(900, wait_for_many, list);
}

// Data that is spliced from a TCP socket into a pipe does not count for that socket any more. One byte keeps a buffer of up
// to 32 KiB, and a pipe has room for 256 buffers.
static long spliced_buffers(void) {
  int listener = listen_on(2001, 16), from = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(2001), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (listener < 0 || connect(from, (struct sockaddr *)&there, sizeof there) < 0) return 0;
  setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  int to = accept(listener, NULL, NULL);
  static char data[32768];
  for (long made = 0;; made++) {
    int ends[2];
    if (made == 60 || !has_time() || pipe2(ends, O_NONBLOCK) < 0) return made;
    usleep(50000);
    fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
    for (int n = 0; n < 256; n++) {
      if (send(from, data, sizeof data, MSG_DONTWAIT) < 0 && errno != EAGAIN) return made;
      if (splice(to, NULL, ends[1], NULL, 1, SPLICE_F_MOVE | SPLICE_F_NONBLOCK) < 0) break;
      while (recv(to, data, sizeof data, MSG_DONTWAIT) > 0) {}
    }
  }
}

static long short_links(void) {
  char target[128], path[64];
  memset(target, 'x', sizeof target);
  target[126] = 0;
  for (long made = 0;; made++) {
    snprintf(path, sizeof path, "/dev/shm/link-%ld", made);
    if (made == 60000 || !has_time() || symlink(target, path) < 0) return made;
  }
}

static long told_descriptors(void) {
  for (long made = 0;; made++) {
    int ends[2];
    if (made == 15000 || !has_time() || pipe(ends) < 0) return made;
    if (fcntl(ends[0], F_SETFL, O_ASYNC) < 0 || fcntl(ends[1], F_SETFL, O_ASYNC) < 0) return made;
  }
}

static long told_directories(void) {
  char path[64];
  for (long made = 0;; made++) {
    snprintf(path, sizeof path, "/dev/shm/told-%ld", made);
    if (made == 20000 || !has_time() || mkdir(path, 0700) < 0) return made;
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || fcntl(fd, F_NOTIFY, DN_CREATE | DN_MULTISHOT) < 0) return made;
  }
}

static long system_files(void) {
  for (long made = 0;; made++) {
    int fd = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY);
    if (made == 60000 || !has_time() || fd < 0) return made;
    char text[64];
    if (read(fd, text, sizeof text) < 0) return made;
  }
}

static long process_files(void) {
  char text[64];
  for (long made = 0;; made++) {
    int fd = open(made & 1 ? "/proc/self/maps" : "/proc/self/mountinfo", O_RDONLY);
    if (made == 30000 || !has_time() || fd < 0 || read(fd, text, sizeof text) < 0) return made;
  }
}

static long secret_memory(void) {
  for (long made = 0;; made++) {
    int fd = (int)syscall(447, 0); // memfd_secret
    if (made == 100 || !has_time() || fd < 0 || ftruncate(fd, 1 << 20) < 0) return made;
    char *at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return made;
    memset(at, 1, 1 << 20);
  }
}

// Each session has its own scheduler group, with a part for each processor of the host.
static long sessions(void) {
  for (long made = 0;; made++) {
    pid_t child = made == 900 || !has_time() ? -1 : fork();
    if (child < 0) return made;
    if (child == 0) {
      setsid();
      for (;;) pause();
    }
  }
}

// An open file refers to the user that opened it, and the kernel keeps two accounting objects per user. Where a process may open no
// more files, a child continues.
static long users(void) {
  for (long made = 0;;) {
    if (!has_time() || syscall(SYS_setresuid, made + 1, -1, -1) < 0) return made;
    int fd = open("/dev/null", O_RDONLY);
    if (syscall(SYS_setresuid, 0, -1, -1) < 0) return made;
    if (fd >= 0) {
      made++;
      continue;
    }
    if (errno != EMFILE) return made;
    pid_t child = fork();
    if (child < 0) return made;
    if (child > 0)
      for (;;) pause();
    if (syscall(SYS_close_range, 3, ~0u, 0) < 0) return made;
  }
}

static long set_processors(void) {
  cpu_set_t all;
  sched_getaffinity(0, sizeof all, &all);
  for (long made = 0;; made++) {
    pid_t child = made == 900 || !has_time() ? -1 : fork();
    if (child < 0) return made;
    if (child == 0) {
      sched_setaffinity(0, sizeof all, &all);
      for (;;) pause();
    }
  }
}

static long sticky_options(void) {
  static char header[2048];
  header[1] = 255;
  for (long made = 0;; made++) {
    int one = socket(AF_INET6, SOCK_DGRAM, 0);
    if (made == 30000 || !has_time() || one < 0) return made;
    for (int option = 54; option < 60; option += 5) setsockopt(one, IPPROTO_IPV6, option, header, sizeof header);
    for (int option = 54; option < 60; option++) setsockopt(one, IPPROTO_IPV6, option, header, 2048);
  }
}

// Asks repeatedly for an object that a sandbox must not get. `ask` returns a number below 0 if it is refused.
static long ask_for(long (*ask)(long made)) {
  for (long made = 0;; made++)
    if (made == 1000 || !has_time() || ask(made) < 0) return made;
}

static char ring_parameters[256], attributes[128];

static long make_ring(long n) { (void)n; return syscall(425, 1, ring_parameters); } // io_uring_setup
static long make_key(long n) {
  char name[32];
  snprintf(name, sizeof name, "key-%ld", n);
  return syscall(SYS_add_key, "user", name, "x", 1, -3);
}
static long catch_faults(long n) { (void)n; return syscall(SYS_userfaultfd, 1); }
static long watch_files(long n) { (void)n; return syscall(SYS_fanotify_init, 0, O_RDONLY); }
static long count_events(long n) { (void)n; ((uint32_t *)attributes)[0] = 1, ((uint32_t *)attributes)[1] = 112; return syscall(SYS_perf_event_open, attributes, 0, -1, -1, 0); }
static long make_map(long n) {
  (void)n;
  uint32_t map[18] = {2, 4, 4096, 1024}; // an array
  return syscall(SYS_bpf, 0, map, sizeof map);
}
static long open_packets(long n) { (void)n; return socket(17, SOCK_RAW, 0); }
static long open_netfilter(long n) { (void)n; return socket(AF_NETLINK, SOCK_RAW, 12); }
static long open_crypto(long n) { (void)n; return socket(38, SOCK_SEQPACKET, 0); }
static long open_tunnel(long n) { (void)n; return open("/dev/net/tun", O_RDWR); }
static long make_namespace(long n) {
  static const int kinds[] = {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP};
  (void)n;
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
    if (unshare(kinds[kind]) == 0) return 1;
  return -1;
}
static long make_mount(long n) { (void)n; return syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, NULL); }
static long make_group(long n) {
  char path[64];
  snprintf(path, sizeof path, "/sys/fs/cgroup/%s%ld", n & 1 ? "memory/" : "", n);
  return mkdir(path, 0700);
}
static long take_huge_page(long n) {
  (void)n;
  return mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0) == MAP_FAILED ? -1 : 1;
}
static long make_route(long n, uint16_t type, size_t body) {
  struct {
    struct nlmsghdr head;
    char body[64];
  } ask = {.head = {.nlmsg_len = (uint32_t)(sizeof ask.head + body), .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK}};
  struct {
    struct nlmsghdr head;
    struct nlmsgerr answer;
    char rest[256];
  } told = {0};
  int one = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  ask.body[0] = type == RTM_NEWLINK ? 0 : AF_INET;
  (void)n;
  if (one < 0 || send(one, &ask, ask.head.nlmsg_len, 0) < 0 || recv(one, &told, sizeof told, 0) < 0) return -1;
  close(one);
  return told.answer.error == -EPERM ? -1 : 1; // the kernel checks the permission before anything else
}
static long make_device(long n) { return make_route(n, RTM_NEWLINK, sizeof(struct ifinfomsg)); }
static long add_route(long n) { return make_route(n, RTM_NEWROUTE, sizeof(struct rtmsg)); }
static long add_neighbour(long n) { return make_route(n, RTM_NEWNEIGH, 12); }

static long rings(void) { return ask_for(make_ring); }
static long keys(void) { return ask_for(make_key); }
static long caught_faults(void) { return ask_for(catch_faults); }
static long watched_files(void) { return ask_for(watch_files); }
static long counted_events(void) { return ask_for(count_events); }
static long maps(void) { return ask_for(make_map); }
static long packet_sockets(void) { return ask_for(open_packets); }
static long netfilter_rules(void) { return ask_for(open_netfilter); }
static long crypto_sockets(void) { return ask_for(open_crypto); }
static long tunnels(void) { return ask_for(open_tunnel); }
static long namespaces(void) { return ask_for(make_namespace); }
static long mounts(void) { return ask_for(make_mount); }
static long control_groups(void) { return ask_for(make_group); }
static long huge_pages(void) { return ask_for(take_huge_page); }
static long devices(void) { return ask_for(make_device); }
static long routes(void) { return ask_for(add_route); }
static long neighbours(void) { return ask_for(add_neighbour); }

static long processes(void) {
  for (long made = 0;; made++) {
    pid_t child = made == 900 || !has_time() ? -1 : fork();
    if (child < 0) return made;
    if (child == 0)
      for (;;) pause();
  }
}

static const struct {
  const char *name;
  long (*run)(void);
} attacks[] = {
    {"acl-shm", acl_shm},
    {"acl-disk", acl_disk},
    {"acl-memfd", acl_memfd},
    {"acl-memfd-at", acl_memfd_at},
    {"user-attributes", user_attributes},
    {"aio-polls", aio_polls},
    {"aio-contexts", aio_contexts},
    {"poll-tables", poll_tables},
    {"select-tables", select_tables},
    {"blocked-readers", blocked_readers},
    {"blocked-opens", blocked_opens},
    {"directory-lists", directory_lists},
    {"directory-lists-slowly", directory_lists_slowly},
    {"tcp-unaccepted", tcp_unaccepted},
    {"tcp-unaccepted-data", tcp_unaccepted_data},
    {"tcp6-unaccepted-data", tcp6_unaccepted_data},
    {"udp-unsent", udp_unsent},
    {"ping-answers", ping_answers},
    {"tcp-keys", tcp_keys},
    {"multicast-groups", multicast_groups},
    {"reuseport-groups", reuseport_groups},
    {"time-waits", time_waits},
    {"udp-queues", udp_queues},
    {"netlink-answers", netlink_answers},
    {"netlink-questions", netlink_questions},
    {"terminals", terminals},
    {"seccomp-filters", seccomp_filters},
    {"descriptors", descriptors},
    {"watches", watches},
    {"inotify-events", inotify_events},
    {"locks", locks},
    {"leases", leases},
    {"pipes", pipes},
    {"unix-queues", unix_queues},
    {"passed-descriptors", passed_descriptors},
    {"unix-names", unix_names},
    {"system-v", system_v},
    {"message-queues", message_queues},
    {"timers", timers},
    {"queued-signals", queued_signals},
    {"page-tables", page_tables},
    {"areas", areas},
    {"missing-names", missing_names},
    {"landlock-rules", landlock_rules},
    {"local-tables", local_tables},
    {"groups", groups},
    {"file-extents", file_extents},
    {"processes", processes},
    {"futex-vectors", futex_vectors},
    {"spliced-buffers", spliced_buffers},
    {"short-links", short_links},
    {"told-descriptors", told_descriptors},
    {"told-directories", told_directories},
    {"system-files", system_files},
    {"process-files", process_files},
    {"secret-memory", secret_memory},
    {"set-processors", set_processors},
    {"sessions", sessions},
    {"users", users},
    {"sticky-options", sticky_options},
    {"rings", rings},
    {"keys", keys},
    {"caught-faults", caught_faults},
    {"watched-files", watched_files},
    {"counted-events", counted_events},
    {"maps", maps},
    {"packet-sockets", packet_sockets},
    {"netfilter-rules", netfilter_rules},
    {"crypto-sockets", crypto_sockets},
    {"tunnels", tunnels},
    {"namespaces", namespaces},
    {"mounts", mounts},
    {"control-groups", control_groups},
    {"huge-pages", huge_pages},
    {"devices", devices},
    {"routes", routes},
    {"neighbours", neighbours},
};

int main(int count, char **arg) {
  if (count != 3) return 2;
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  long milliseconds = (long)(atof(arg[2]) * 1000) + deadline.tv_nsec / 1000000;
  deadline.tv_sec += milliseconds / 1000;
  deadline.tv_nsec = milliseconds % 1000 * 1000000;
  for (size_t n = 0; n < sizeof attacks / sizeof *attacks; n++) {
    if (strcmp(attacks[n].name, arg[1]) != 0) continue;
    errno = 0;
    long made = attacks[n].run();
    printf("%s %ld %d\n", arg[1], made, errno);
    fflush(stdout);
    for (;;) pause();
  }
  fprintf(stderr, "no attack is called %s\n", arg[1]);
  return 2;
}
