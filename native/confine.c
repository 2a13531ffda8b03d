// Gives up privileges by the steps of its command line, then becomes the given program.
//
//   confine STEP ARGUMENTS… STEP ARGUMENTS… exec PROGRAM ARGUMENTS…
//
//   view              makes a private root directory (the view): the host's /usr read-only, a few devices, an empty /tmp, and in
//                     /proc only the process itself
//   etc               shows the host's /etc, read-only
//   hide PATH         covers a directory of the view with an empty one
//   see FROM AT       shows a file or directory of the host in the view, read-only
//   write FROM AT     like `see`, but writable as far as the user may write there
//   no-network        a network namespace without any interface
//   limit NAME VALUE  a resource limit: memory, data, cpu, files or filesize
//   enter UID PORTS   the view becomes the root; from here on the user is UID, without capabilities and without a way to
//                     gain any. PORTS is `any` to keep the right to listen below port 1024, else `high`.
//   tie SIGNAL        the kernel sends SIGNAL to the program when the program's parent ends
//   filter SOCKETS PROCESSES
//                     the system call filter of filter.c. SOCKETS: none, unix or internet.
//                     PROCESSES: alone (no child process) or many.
//
// `src/kit/confined.ts` is the only caller. If a step fails, the program exits with 125 and one line on standard error.
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <grp.h>
#include <unistd.h>

#include "confine.h"

enum { failed = 125, path_limit = 4096 };

// Place of the new root in the private mount namespace. Every host has /sys, and the program needs no file of it.
static const char *const place = "/sys";

static const char *current_word = "arguments";
static pid_t parent;

_Noreturn void fail(const char *about) {
  dprintf(STDERR_FILENO, "confine %s: %s (%s)\n", current_word, strerror(errno), about);
  _exit(failed);
}

_Noreturn void refuse(const char *why) {
  dprintf(STDERR_FILENO, "confine %s: %s\n", current_word, why);
  _exit(failed);
}

static unsigned long number(const char *text) {
  char *end;
  errno = 0;
  unsigned long value = strtoul(text, &end, 10);
  if (errno || end == text || *end) refuse("not a number");
  return value;
}

// Returns the place of `path` in the new root: /sys/etc for /etc. Each call overwrites the result of the previous call.
static const char *inside(const char *path) {
  static char buffer[path_limit];
  if (path[0] != '/') refuse("a path must be absolute");
  if ((size_t)snprintf(buffer, sizeof buffer, "%s%s", place, path) >= sizeof buffer) refuse("the path is too long");
  return buffer;
}

static void make_parents(const char *path) {
  char buffer[path_limit];
  strcpy(buffer, path);
  for (char *at = strchr(buffer + strlen(place) + 1, '/'); at; at = strchr(at + 1, '/')) {
    *at = 0;
    if (mkdir(buffer, 0755) < 0 && errno != EEXIST) fail(buffer);
    *at = '/';
  }
}

static void mount_tmpfs(const char *at, const char *options) {
  if (mount("tmpfs", at, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0) fail(at);
}

static void show(const char *from, const char *path, unsigned long how, unsigned long flags) {
  const char *at = inside(path);
  struct stat source, target;
  if (stat(from, &source) < 0) fail(from);
  if (stat(at, &target) < 0) {
    make_parents(at);
    if (S_ISDIR(source.st_mode)) {
      if (mkdir(at, 0755) < 0) fail(at);
    } else {
      int file = open(at, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
      if (file < 0) fail(at);
      close(file);
    }
  }
  if (mount(from, at, NULL, MS_BIND | how, NULL) < 0) fail(from);
  struct statvfs now;
  if (statvfs(at, &now) < 0) fail(at);
  if (now.f_flag & ST_NOEXEC) flags |= MS_NOEXEC;
  if (now.f_flag & ST_RDONLY) flags |= MS_RDONLY;
  if (mount(NULL, at, NULL, MS_BIND | MS_REMOUNT | flags, NULL) < 0) fail(at);
}

static const unsigned long closed = MS_RDONLY | MS_NOSUID | MS_NODEV;

static void write_file(const char *path, const char *text) {
  const char *at = inside(path);
  make_parents(at);
  int file = open(at, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text)) fail(at);
  close(file);
}

// Shows a system directory of the host in the new root. On most hosts, /lib and other directories are links into /usr; a link stays
// a link.
static void show_system(const char *path) {
  struct stat found;
  if (lstat(path, &found) < 0) return;
  if (!S_ISLNK(found.st_mode)) return show(path, path, 0, closed);
  char target[path_limit];
  ssize_t length = readlink(path, target, sizeof target - 1);
  if (length < 0) fail(path);
  target[length] = 0;
  if (symlink(target, inside(path)) < 0) fail(path);
}

static void show_if_there(const char *path, unsigned long flags) {
  if (access(path, F_OK) == 0) show(path, path, 0, flags);
}

// Shows in /proc only the process itself and five files about the machine: no other processes of this user, no kernel settings.
static void show_own_process(void) {
  char own[32];
  snprintf(own, sizeof own, "/proc/%d", (int)getpid());
  if (mkdir(inside("/proc"), 0555) < 0) fail("/proc");
  show(own, own, 0, closed | MS_NOEXEC);
  if (symlink(own + strlen("/proc/"), inside("/proc/self")) < 0) fail("/proc/self");
  for (const char *const *name = (const char *const[]){"cpuinfo", "loadavg", "meminfo", "stat", "uptime", NULL}; *name;
       name++) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%s", *name);
    show_if_there(path, closed | MS_NOEXEC);
  }
}

static void make_view(char **arg) {
  (void)arg;
  if (unshare(CLONE_NEWNS) < 0) fail("a mount namespace");
  // The new namespace begins with copies of all mounts of the host. Private copies hide our later mounts from the host.
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) fail("/");
  // The new root is an empty file system at `place`. The lines below make the directories that the program will see.
  mount_tmpfs(place, "mode=755,size=1m");
  for (const char *const *path = (const char *const[]){"/usr", "/bin", "/sbin", "/lib", "/lib64", NULL}; *path; path++)
    show_system(*path);
  if (mkdir(inside("/dev"), 0755) < 0) fail("/dev");
  for (const char *const *path =
           (const char *const[]){"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", NULL};
       *path; path++)
    show_if_there(*path, MS_NOSUID | MS_NOEXEC);
  for (const char *const *path = (const char *const[]){"/tmp", "/dev/shm", NULL}; *path; path++) {
    if (mkdir(inside(*path), 0755) < 0) fail(*path);
    mount_tmpfs(inside(*path), "mode=1777,size=64m");
  }
  if (mkdir(inside("/etc"), 0755) < 0) fail("/etc");
  show_if_there("/etc/ld.so.cache", closed);
  show_own_process();
}

// Shows the whole directory /etc. The host replaces files such as resolv.conf by renames, which a mount of one file would not
// follow.
static void show_etc(char **arg) {
  (void)arg;
  show("/etc", "/etc", MS_REC, closed);
  // On most hosts, links in /etc (such as /etc/resolv.conf) lead into these directories. So show these directories, too.
  for (const char *const *path = (const char *const[]){"/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager",
                                                       "/run/connman", NULL};
       *path; path++)
    show_if_there(*path, closed);
}

static void hide(char **arg) {
  const char *at = inside(arg[0]);
  struct stat found;
  if (stat(at, &found) == 0 && S_ISDIR(found.st_mode)) mount_tmpfs(at, "mode=755,size=64k");
}

static void see(char **arg) { show(arg[0], arg[1], 0, closed); }
static void see_writable(char **arg) { show(arg[0], arg[1], 0, MS_NOSUID | MS_NODEV); }

static void no_network(char **arg) {
  (void)arg;
  if (unshare(CLONE_NEWNET) < 0) fail("a network namespace");
}

static void set_limit(char **arg) {
  static const struct {
    const char *name;
    int resource;
  } known[] = {{"memory", RLIMIT_AS}, {"data", RLIMIT_DATA}, {"cpu", RLIMIT_CPU}, {"files", RLIMIT_NOFILE}, {"filesize", RLIMIT_FSIZE}};
  unsigned long value = number(arg[1]);
  struct rlimit limit = {value, value};
  for (size_t index = 0; index < sizeof known / sizeof *known; index++) {
    if (strcmp(known[index].name, arg[0]) != 0) continue;
    if (setrlimit((__rlimit_resource_t)known[index].resource, &limit) < 0) fail(arg[0]);
    return;
  }
  refuse("no such limit");
}

static void change_root(void) {
  if (chdir(place) < 0) fail(place);
  if (syscall(SYS_pivot_root, ".", ".") == 0) {
    // Remove the copies of the host's mounts. A copy keeps its file system in use, even after the host has unmounted it.
    if (umount2(".", MNT_DETACH) < 0) fail("the host's root");
  } else {
    // Use chroot, because pivot_root fails if the host's root is an initial RAM disk. A program without capabilities cannot leave a
    // chroot.
    if (mount(".", "/", NULL, MS_MOVE, NULL) < 0) fail("the new root");
    if (chroot(".") < 0) fail("the new root");
  }
  if (chdir("/") < 0) fail("/");
  if (mount(NULL, "/", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0) fail("/");
}

static void keep_bounding_set(unsigned long kept) {
  for (unsigned long capability = 0;; capability++) {
    if (capability == kept) continue;
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0) continue;
    if (errno == EINVAL) return;
    fail("the bounding set");
  }
}

// Keeps the right to listen below port 1024 as an ambient capability, which the program inherits although it is not root.
static void keep_low_ports(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const unsigned bit = 1u << CAP_NET_BIND_SERVICE;
  const struct __user_cap_data_struct data[2] = {{bit, bit, bit}, {0, 0, 0}};
  if (syscall(SYS_capset, &header, data) < 0) fail("capset");
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_BIND_SERVICE, 0, 0) < 0) fail("an ambient capability");
}

static void enter(char **arg) {
  unsigned long user = number(arg[0]);
  int low_ports = strcmp(arg[1], "any") == 0;
  if (user == 0 || user > 0x7fffffff) refuse("not a user without privileges");
  if (access(inside("/etc/passwd"), F_OK) < 0) {
    // Give the user an entry in /etc/passwd, because some programs fail if their user has no name.
    char text[128];
    snprintf(text, sizeof text, "alcove:x:%lu:%lu::/:/usr/sbin/nologin\n", user, user);
    write_file("/etc/passwd", text);
    snprintf(text, sizeof text, "alcove:x:%lu:\n", user);
    write_file("/etc/group", text);
  }
  // Forbid core dumps: they would contain the keys that the program was given.
  if (setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}) < 0) fail("no core dumps");
  change_root();
  keep_bounding_set(low_ports ? CAP_NET_BIND_SERVICE : (unsigned long)-1);
  if (low_ports && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0) fail("keep capabilities");
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0) fail("ambient capabilities");
  if (setgroups(0, NULL) < 0) fail("groups");
  if (setresgid((gid_t)user, (gid_t)user, (gid_t)user) < 0) fail("the group");
  if (setresuid((uid_t)user, (uid_t)user, (uid_t)user) < 0) fail("the user");
  if (low_ports) keep_low_ports();
}

static void tie(char **arg) {
  if (prctl(PR_SET_PDEATHSIG, number(arg[0]), 0, 0, 0) < 0) fail(arg[0]);
  // The kernel sends no signal if the parent ended before `prctl`. So check that this process still has the same parent.
  if (getppid() != parent) _exit(failed);
}

static void install_filter(char **arg) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) fail("no new privileges");
  filter_system_calls(arg[0], arg[1]);
}

// Closes descriptors, so that the program inherits only the standard files and Node's channel to its parent.
static void close_the_rest(void) {
  const char *channel = getenv("NODE_CHANNEL_FD");
  unsigned kept = channel ? (unsigned)number(channel) : 2;
  if (kept > 3) syscall(SYS_close_range, 3, kept - 1, 0);
  if (syscall(SYS_close_range, kept < 3 ? 3 : kept + 1, ~0u, 0) == 0) return;
  // Linux before 5.9 has no close_range, so close each descriptor below 1024.
  for (unsigned each = 3; each < 1024; each++)
    if (each != kept) close((int)each);
}

static const struct {
  const char *name;
  int arguments;
  void (*run)(char **arg);
} words[] = {
    {"view", 0, make_view},   {"etc", 0, show_etc},           {"hide", 1, hide},       {"see", 2, see},
    {"write", 2, see_writable}, {"no-network", 0, no_network}, {"limit", 2, set_limit}, {"enter", 2, enter},
    {"tie", 1, tie},          {"filter", 2, install_filter},
};

int main(int count, char **arg) {
  parent = getppid();
  umask(022);
  for (int at = 1; at < count;) {
    current_word = arg[at];
    if (strcmp(arg[at], "exec") == 0) {
      if (at + 1 >= count) refuse("no program");
      close_the_rest();
      execvp(arg[at + 1], arg + at + 1);
      fail(arg[at + 1]);
    }
    size_t known = sizeof words / sizeof *words, index = 0;
    while (index < known && strcmp(words[index].name, arg[at]) != 0) index++;
    if (index == known) refuse("no such word");
    if (count - at - 1 < words[index].arguments) refuse("arguments are missing");
    words[index].run(arg + at + 1);
    at += 1 + words[index].arguments;
  }
  refuse("no program");
}
