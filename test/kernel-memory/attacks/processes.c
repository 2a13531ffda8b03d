// Attacks with processes: their memory, filters, timers, signals, users and sessions.
#include "attacks.h"

long seccomp_filters(void) {
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

long timers(void) {
  struct sigevent none = {.sigev_notify = SIGEV_NONE};
  for (long made = 0;; made++) {
    timer_t one;
    if (made == 300000 || ((made & 63) == 0 && !has_time()) || timer_create(CLOCK_MONOTONIC, &none, &one) < 0) return made;
  }
}

long queued_signals(void) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGRTMIN);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  for (long made = 0;; made++)
    if (made == 500000 || ((made & 63) == 0 && !has_time()) || sigqueue(getpid(), SIGRTMIN, (union sigval){0}) < 0) return made;
}

long page_tables(void) {
  char *all = mmap(NULL, 1UL << 40, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  for (long made = 0;; made++) {
    if (made == 30000 || !has_time() || all == MAP_FAILED) return made;
    volatile char read = all[(size_t)made << 21];
    (void)read;
  }
}

long areas(void) {
  for (long made = 0;; made++)
    if (made == 60000 || !has_time() || mmap(NULL, 4096, made & 1 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) return made;
}

long landlock_rules(void) {
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

long local_tables(void) {
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

long groups(void) {
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

long secret_memory(void) {
  for (long made = 0;; made++) {
    int fd = (int)syscall(447, 0); // memfd_secret
    if (made == 100 || !has_time() || fd < 0 || ftruncate(fd, 1 << 20) < 0) return made;
    char *at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return made;
    memset(at, 1, 1 << 20);
  }
}

// Each session has a scheduler group of its own, which needs memory for every processor of the host.
long sessions(void) {
  for (long made = 0;; made++) {
    pid_t child = made == 900 || !has_time() ? -1 : fork();
    if (child < 0) return made;
    if (child == 0) {
      setsid();
      for (;;) pause();
    }
  }
}

// An open file keeps the user in memory who opened it, and the kernel has two accounting objects for each user. When a
// process can open no more files, a child process goes on.
long users(void) {
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

long set_processors(void) {
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

long processes(void) {
  for (long made = 0;; made++) {
    pid_t child = made == 900 || !has_time() ? -1 : fork();
    if (child < 0) return made;
    if (child == 0)
      for (;;) pause();
  }
}
