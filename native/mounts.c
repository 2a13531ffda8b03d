// Steps of a sandbox's start that prepare what the sandbox sees: namespaces, and mounts that disappear with them.
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"

// Values of <linux/mount.h>, which conflicts with <sys/mount.h> in some C libraries.
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
enum {
  open_tree_clone = 1,
  move_mount_from_empty_path = 4,
  attribute_nosuid = 2,
  attribute_nodev = 4,
  attribute_idmap = 0x100000
};
struct attributes {
  uint64_t set, clear, propagation, user_namespace;
};

static int id_map = -1;

// The devices in a sandbox's /dev. The OCI runtime bind-mounts them from the /dev that the runtime itself sees.
static const struct {
  const char *path;
  unsigned major, minor;
} devices[] = {
    {"/dev/null", 1, 3},   {"/dev/zero", 1, 5},    {"/dev/full", 1, 7},
    {"/dev/random", 1, 8}, {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0},
};

// Gives the sandbox the host's devices, on hosts where no process may make devices. Here standard input and output are the host's
// /dev/null, and crun would make the sandbox's root user their owner. The read-only mount of /dev/null prevents this.
static void keep_devices_of_host(void) {
  if (umount2("/dev", MNT_DETACH) < 0) fail("/dev");
  if (mount("/dev/null", "/dev/null", NULL, MS_BIND, NULL) < 0) fail("/dev/null");
  if (mount(NULL, "/dev/null", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC, NULL) < 0) fail("/dev/null");
}

// Makes separate devices for each sandbox. With shared device files, a sandbox could watch the accesses of other sandboxes, or lock
// a file so that they cannot lock it. The mount is read-only, so that no sandbox can own a device.
static void make_devices(void) {
  const char *options = "mode=0755,size=64k,nr_inodes=16";
  if (mount("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, options) < 0) fail("/dev");
  mode_t before = umask(0);
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
    if (mknod(devices[i].path, S_IFCHR | 0666, makedev(devices[i].major, devices[i].minor)) < 0) {
      if (errno != EPERM) fail(devices[i].path);
      umask(before);
      keep_devices_of_host();
      return;
    }
  umask(before);
  if (mount(NULL, "/dev", NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NOEXEC, NULL) < 0) fail("/dev");
}

// private: makes a private mount namespace. Later mounts disappear with the sandbox and are invisible to the host.
void enter_private_mounts(char **arg) {
  (void)arg;
  if (unshare(CLONE_NEWNS) < 0) fail("mount namespace");
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) fail("/");
  make_devices();
}

// sysfs NETNS PATH: mounts the /sys of a network namespace. Each mount has its own inodes, and shows only that namespace's
// network cards.
void mount_sysfs(char **arg) {
  int host = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  int network = open(arg[0], O_RDONLY | O_CLOEXEC);
  if (host < 0 || network < 0 || setns(network, CLONE_NEWNET) < 0) fail(arg[0]);
  if (mount("sysfs", arg[1], "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) fail(arg[1]);
  if (setns(host, CLONE_NEWNET) < 0) fail("network namespace");
  close(network);
  close(host);
}

// own-time: later programs get their own time namespace, with the host's clocks. Otherwise /proc/self/ns/time would be one file
// that all sandboxes share.
void unshare_time(char **arg) {
  (void)arg;
  if (unshare(CLONE_NEWTIME) < 0 && errno != EINVAL) fail("time namespace");
}

// hide PATH: covers the mount at PATH with an empty directory. The runner hides one cgroup version from crun, because crun refuses
// a host with both versions. The directory disappears with the mount namespace, and so do the files that crun makes in it. An
// unmount would be slower, because the kernel then waits for every processor.
void hide(char **arg) {
  const char *options = "mode=0700,size=64k,nr_inodes=64";
  if (mount("tmpfs", arg[0], "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) < 0 && errno != ENOENT) fail(arg[0]);
}

// overlay OPTIONS PATH: mounts an overlay with nosuid, so that the kernel ignores capabilities of files. Otherwise the kernel would
// refuse programs such as Debian's ping, whose capabilities a sandbox may not have. Nothing is lost: a sandbox's processes cannot
// gain privileges anyway.
void mount_overlay(char **arg) {
  if (mount("overlay", arg[1], "overlay", MS_NODEV | MS_NOSUID, arg[0]) < 0) fail(arg[1]);
}

// bind FROM TO: makes the contents of FROM visible at TO as well (mount(2), MS_BIND).
void mount_bind(char **arg) {
  if (mount(arg[0], arg[1], NULL, MS_BIND, NULL) < 0) fail(arg[0]);
}

static void write_to(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) fail(path);
  close(fd);
}

// ids MAP: sets how later `bind-mapped` steps map owners on the disk to owners in the sandbox. MAP has the form of uid_map
// (user_namespaces(7)). The kernel takes such a MAP only from a user namespace, which a child process makes.
void make_id_map(char **arg) {
  int until[2];
  if (pipe2(until, O_CLOEXEC) < 0) fail("pipe");
  pid_t inside = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
  if (inside < 0) fail("user namespace");
  if (inside == 0) {
    char nothing;
    close(until[1]);
    _exit(read(until[0], &nothing, 1) != 0);
  }
  char path[64];
  for (const char *kind = "ug"; *kind; kind++) {
    snprintf(path, sizeof path, "/proc/%d/%cid_map", inside, *kind);
    write_to(path, arg[0]);
  }
  snprintf(path, sizeof path, "/proc/%d/ns/user", inside);
  id_map = open(path, O_RDONLY | O_CLOEXEC);
  if (id_map < 0) fail(path);
  close(until[0]);
  close(until[1]);
  while (waitpid(inside, NULL, 0) < 0)
    if (errno != EINTR) fail("user namespace");
}

// bind-mapped FROM TO: like `bind`, but maps owners by the MAP of an earlier step `ids` (mount_setattr(2)). Unmapped owners
// appear as nobody.
void mount_mapped(char **arg) {
  if (id_map < 0) refuse("ids come first");
  struct attributes mapped = {.set = attribute_idmap, .user_namespace = (uint64_t)id_map};
  int tree = (int)syscall(SYS_open_tree, AT_FDCWD, arg[0], open_tree_clone | O_CLOEXEC);
  if (tree < 0) fail(arg[0]);
  if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &mapped, sizeof mapped) < 0) fail(arg[0]);
  if (syscall(SYS_move_mount, tree, "", AT_FDCWD, arg[1], move_mount_from_empty_path) < 0) fail(arg[1]);
  close(tree);
}

// Mounts an open directory without devices and set-id bits. `id_map` maps the owners, if an earlier step `ids` has set it.
void show_directory(int directory, const char *to) {
  struct attributes shown = {.set = attribute_nosuid | attribute_nodev};
  if (id_map >= 0) {
    shown.set |= attribute_idmap;
    shown.user_namespace = (uint64_t)id_map;
  }
  int tree = (int)syscall(SYS_open_tree, directory, "", AT_EMPTY_PATH | open_tree_clone | O_CLOEXEC);
  if (tree < 0) fail(to);
  if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &shown, sizeof shown) < 0) fail(to);
  if (syscall(SYS_move_mount, tree, "", AT_FDCWD, to, move_mount_from_empty_path) < 0) fail(to);
  close(tree);
}

// Whether two paths in /proc refer to the same namespace.
static int is_same_namespace(const char *one, const char *other) {
  struct stat a, b;
  if (stat(one, &a) < 0) fail(one);
  if (stat(other, &b) < 0) fail(other);
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// shm PID BYTES: sets the size of a sandbox's /dev/shm. Fails if /dev/shm contains more. PID is the sandbox's first process.
// Processes inside cannot mount anything, so /dev/shm is still what the runtime mounted.
void resize_shared_memory(char **arg) {
  const char *place = "/dev/shm";
  char namespace[64], options[64];
  snprintf(namespace, sizeof namespace, "/proc/%llu/ns/mnt", number(arg[0], 10));
  snprintf(options, sizeof options, "size=%llu", number(arg[1], 10));
  int fd = open(namespace, O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(namespace);
  if (is_same_namespace(namespace, "/proc/self/ns/mnt")) refuse("this is no sandbox");
  if (setns(fd, CLONE_NEWNS) < 0) fail(namespace);
  close(fd);
  struct statfs found;
  if (statfs(place, &found) < 0) fail(place);
  if (found.f_type != TMPFS_MAGIC) refuse("this is no memory");
  if (mount(NULL, place, NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC, options) < 0) fail(place);
}

// read-only PATH: makes the mount at PATH read-only.
void make_read_only(char **arg) {
  if (mount(NULL, arg[0], NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) < 0) fail(arg[0]);
}
