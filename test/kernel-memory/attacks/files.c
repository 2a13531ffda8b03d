// Attacks with files and directories: their attributes, names, lists, locks and watches.
#include "attacks.h"

// Makes an access control list in the kernel's format (linux/posix_acl_xattr.h). It has at most `most` bytes.
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

// Returns the size of the largest access control list that the file system and the seccomp filter accept.
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

long acl_shm(void) { return acl_on_directories("/dev/shm", 1200); }
long acl_disk(void) { return acl_on_directories("/tmp", 8000); }

long acl_memfd(void) {
  size_t size = 0;
  for (long made = 0;; made++) {
    int fd = memfd_create("acl", 0);
    if (made == 2000 || !has_time() || fd < 0) return made;
    if (made == 0) size = largest_acl(fd);
    if (size == 0 || fsetxattr(fd, access_list, acl, size, 0) < 0) return made;
  }
}

// This newer system call gets the size of the list in a structure in memory, which a seccomp filter cannot read.
long acl_memfd_at(void) {
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

long user_attributes(void) {
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

// An open overlay directory keeps a list of its names in memory. When a file is added, the next program that opens the
// directory gets another list.
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

// The pauses make the attack last for some seconds even on a fast machine.
long directory_lists(void) { return list_again(2000, 600, 10000); }

// Does what `directory_lists` does, but so slowly that it uses only about 1 MiB more in each second.
long directory_lists_slowly(void) { return list_again(200, 3000, 100000); }

long terminals(void) {
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

long descriptors(void) {
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

long watches(void) {
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

long inotify_events(void) {
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

long locks(void) {
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

long leases(void) {
  char path[64];
  for (long made = 0;; made++) {
    snprintf(path, sizeof path, "/tmp/lease-%ld", made);
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    if (made == 20000 || !has_time() || fd < 0) return made;
    if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0 || fcntl(fd, F_SETOWN, getpid()) < 0) return made;
  }
}

long missing_names(void) {
  char path[256];
  struct stat found;
  for (long made = 0;; made++) {
    snprintf(path, sizeof path, "/tmp/%0200ld", 1000000 + made);
    if (made == 300000 || ((made & 63) == 0 && !has_time())) return made;
    stat(path, &found);
  }
}

long file_extents(void) {
  int fd = open("/tmp/extents", O_CREAT | O_RDWR, 0600);
  for (long made = 0;; made++) {
    if (made == 50000 || ((made & 63) == 0 && !has_time())) {
      fsync(fd);
      return made;
    }
    if (pwrite(fd, "x", 1, made * 16384) < 0) return made;
  }
}

long short_links(void) {
  char target[128], path[64];
  memset(target, 'x', sizeof target);
  target[126] = 0;
  for (long made = 0;; made++) {
    snprintf(path, sizeof path, "/dev/shm/link-%ld", made);
    if (made == 60000 || !has_time() || symlink(target, path) < 0) return made;
  }
}

long told_descriptors(void) {
  for (long made = 0;; made++) {
    int ends[2];
    if (made == 15000 || !has_time() || pipe(ends) < 0) return made;
    if (fcntl(ends[0], F_SETFL, O_ASYNC) < 0 || fcntl(ends[1], F_SETFL, O_ASYNC) < 0) return made;
  }
}

long told_directories(void) {
  char path[64];
  for (long made = 0;; made++) {
    snprintf(path, sizeof path, "/dev/shm/told-%ld", made);
    if (made == 20000 || !has_time() || mkdir(path, 0700) < 0) return made;
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || fcntl(fd, F_NOTIFY, DN_CREATE | DN_MULTISHOT) < 0) return made;
  }
}

long system_files(void) {
  for (long made = 0;; made++) {
    int fd = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY);
    if (made == 60000 || !has_time() || fd < 0) return made;
    char text[64];
    if (read(fd, text, sizeof text) < 0) return made;
  }
}

long process_files(void) {
  char text[64];
  for (long made = 0;; made++) {
    int fd = open(made & 1 ? "/proc/self/maps" : "/proc/self/mountinfo", O_RDONLY);
    if (made == 30000 || !has_time() || fd < 0 || read(fd, text, sizeof text) < 0) return made;
  }
}
