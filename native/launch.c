// Carries out, in order, the steps of one sandbox start that need the kernel and not a shell, then becomes the OCI
// runtime. One process does all of it because every process that Node has to spawn costs more than all the steps.
//
//   launch STEP ARGUMENTS… STEP ARGUMENTS… [exec PROGRAM ARGUMENTS…]
//   launch serve [FILE]: see serve.c
//
// Every step is safe to repeat. The first that fails ends the program with 125 and one line on standard error that
// names it. `runner/launch.ts` is the only caller; nothing in the arguments comes from inside a sandbox.
//
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/btrfs.h>
#include <linux/close_range.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "launch.h"

enum { inherited_socket = 3, backlog = 1024 };

// Values of <linux/mount.h>, which not every C library lets stand beside <sys/mount.h>.
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
enum { open_tree_clone = 1, move_mount_from_empty_path = 4, attribute_idmap = 0x100000 };
struct attributes {
  uint64_t set, clear, propagation, user_namespace;
};

static const char *current_step = "arguments";
static int complaints = STDERR_FILENO;
static int id_map = -1;

static _Noreturn void fail(const char *about) {
  dprintf(complaints, "%s: %s (%s)\n", current_step, strerror(errno), about);
  _exit(failed);
}

static _Noreturn void refuse(const char *why) {
  dprintf(complaints, "%s: %s\n", current_step, why);
  _exit(failed);
}

static unsigned long long number(const char *text, int base) {
  char *end;
  errno = 0;
  unsigned long long value = strtoull(text, &end, base);
  if (errno || end == text || *end) refuse("not a number");
  return value;
}

// Opens the directory that holds `path` and points `name` at the last part of it.
static int open_parent(const char *path, const char **name) {
  const char *slash = strrchr(path, '/');
  if (!slash || slash == path || !slash[1]) refuse("the path must be absolute and have a parent");
  *name = slash + 1;
  char *parent = strndup(path, (size_t)(slash - path));
  if (!parent) fail(path);
  int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail(parent);
  free(parent);
  return fd;
}

static void name_subvolume(struct btrfs_ioctl_vol_args *args, const char *name) {
  memset(args, 0, sizeof *args);
  if (strlen(name) >= sizeof args->name) refuse("the name is too long");
  strcpy(args->name, name);
}

// subvolume PATH
static void make_subvolume(char **arg) {
  const char *name;
  struct btrfs_ioctl_vol_args args;
  int parent = open_parent(arg[0], &name);
  name_subvolume(&args, name);
  if (ioctl(parent, BTRFS_IOC_SUBVOL_CREATE, &args) < 0 && errno != EEXIST) fail(arg[0]);
  close(parent);
}

// limit PATH BYTES: what the subvolume may hold, its snapshots' shared part included.
static void limit_subvolume(char **arg) {
  int fd = open(arg[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail(arg[0]);
  struct btrfs_ioctl_qgroup_limit_args args;
  memset(&args, 0, sizeof args);  // qgroup 0: the one of the subvolume itself
  args.lim.flags = BTRFS_QGROUP_LIMIT_MAX_RFER;
  args.lim.max_rfer = number(arg[1], 10);
  if (ioctl(fd, BTRFS_IOC_QGROUP_LIMIT, &args) < 0) fail(arg[0]);
  close(fd);
}

// delete-subvolume PATH: gone at once for everybody; the kernel frees the space in the background.
static void delete_subvolume(char **arg) {
  const char *name;
  struct btrfs_ioctl_vol_args args;
  struct btrfs_ioctl_get_subvol_info_args info;
  int parent = open_parent(arg[0], &name);
  int subvolume = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (subvolume < 0) {
    if (errno != ENOENT) fail(arg[0]);
    close(parent);
    return;
  }
  int known = ioctl(subvolume, BTRFS_IOC_GET_SUBVOL_INFO, &info) == 0;
  close(subvolume);
  name_subvolume(&args, name);
  if (ioctl(parent, BTRFS_IOC_SNAP_DESTROY, &args) < 0 && errno != ENOENT) fail(arg[0]);
  if (known) {
    // Newer kernels drop the quota group by themselves; older ones keep it for ever. A refusal costs nothing.
    struct btrfs_ioctl_qgroup_create_args group = {.create = 0, .qgroupid = info.treeid};
    (void)ioctl(parent, BTRFS_IOC_QGROUP_CREATE, &group);
  }
  close(parent);
}

// snapshot FROM TO: a subvolume with what another one holds now. It takes as long whatever that is.
static void make_snapshot(char **arg) {
  const char *name;
  struct btrfs_ioctl_vol_args_v2 args;
  memset(&args, 0, sizeof args);
  int parent = open_parent(arg[1], &name);
  if (strlen(name) >= sizeof args.name) refuse("the name is too long");
  strcpy(args.name, name);
  int from = open(arg[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (from < 0) fail(arg[0]);
  args.fd = from;
  if (ioctl(parent, BTRFS_IOC_SNAP_CREATE_V2, &args) < 0) fail(arg[1]);
  close(from);
  close(parent);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk) {
  (void)status, (void)type, (void)walk;
  if (remove(path) < 0 && errno != ENOENT) fail(path);
  return 0;
}

// remove-tree PATH: for what nobody else can reach.
static void remove_tree(char **arg) {
  if (nftw(arg[0], remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) < 0 && errno != ENOENT) fail(arg[0]);
}

// Whose ids a sandbox may have on the disk, for `disarm`.
static uid_t first_id, id_count;

static int is_of_sandbox(uid_t id) { return id >= first_id && id - first_id < id_count; }

// Capabilities count where the user who is root of a user namespace is the one that they name (vfs_ns_cap_data).
static int is_harmless_capability(const uint32_t *data, ssize_t size) {
  const uint32_t version = 3;
  return size == 6 * sizeof *data && le32toh(data[0]) >> 24 == version && is_of_sandbox(le32toh(data[5]));
}

static int disarm_one(const char *path, const struct stat *status, int type, struct FTW *walk) {
  (void)type;
  uint32_t data[16];
  const char *name = path + walk->base;
  // The sandbox's directory of `upper` is named by a whole path, everything below it where we stand.
  if (walk->level == 0) name = path;
  ssize_t size = lgetxattr(name, "security.capability", data, sizeof data);
  if ((size >= 0 && !is_harmless_capability(data, size)) || (size < 0 && errno == ERANGE)) {
    if (lremovexattr(name, "security.capability") < 0) fail(path);
  } else if (size < 0 && errno != ENODATA && errno != EOPNOTSUPP) {
    fail(path);
  }
  // An overlay stands for a removed file by a device 0, 0.
  int is_device = S_ISBLK(status->st_mode) || (S_ISCHR(status->st_mode) && status->st_rdev != 0);
  if (is_device && unlink(name) < 0) fail(path);
  mode_t rights = status->st_mode & 07777;
  if (S_ISREG(status->st_mode) && (rights & (S_ISUID | S_ISGID)) && !is_of_sandbox(status->st_uid) &&
      chmod(name, rights & 01777) < 0)
    fail(path);
  return 0;
}

// disarm PATH FIRST COUNT: takes from a tree that nobody else can reach what no sandbox with these ids could have made:
// capabilities of other users, devices, and the right of a program to become another user.
static void disarm(char **arg) {
  first_id = (uid_t)number(arg[1], 10);
  id_count = (uid_t)number(arg[2], 10);
  if (nftw(arg[0], disarm_one, 16, FTW_PHYS | FTW_MOUNT | FTW_CHDIR) < 0) fail(arg[0]);
}

// forget-file DIRECTORY PATH: removes one file below a directory that a sandbox filled. No link in it leads anywhere, and
// what lies there instead of a file is left alone.
static void forget_file(char **arg) {
  struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
  char *slash = strrchr(arg[1], '/');
  if (!slash || slash == arg[1]) refuse("the path must have a directory");
  int base = open(arg[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (base < 0) fail(arg[0]);
  *slash = 0;
  int parent = (int)syscall(SYS_openat2, base, arg[1], &how, sizeof how);
  *slash = '/';
  if (parent >= 0) {
    if (unlinkat(parent, slash + 1, 0) < 0 && errno != ENOENT && errno != EISDIR && errno != EPERM) fail(arg[1]);
    close(parent);
  } else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP && errno != EXDEV) {
    fail(arg[1]);
  }
  close(base);
}

// rename FROM TO
static void rename_to(char **arg) {
  if (rename(arg[0], arg[1]) < 0) fail(arg[1]);
}

// sync PATH: what a file holds, or the names in a directory, outlives a power cut from here on.
static void sync_to_disk(char **arg) {
  int fd = open(arg[0], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 || fsync(fd) < 0) fail(arg[0]);
  close(fd);
}

// directory PATH OWNER MODE: only for a disk that no sandbox has had yet; one half made is made whole.
static void make_directory(char **arg) {
  uid_t owner = (uid_t)number(arg[1], 10);
  mode_t mode = (mode_t)number(arg[2], 8);
  if (mkdir(arg[0], 0700) < 0 && errno != EEXIST) fail(arg[0]);
  if (chown(arg[0], owner, owner) < 0 || chmod(arg[0], mode) < 0) fail(arg[0]);
}

// Whether a file has exactly this text, owner and mode already.
static int is_as_wanted(const char *path, uid_t owner, const char *text, size_t length) {
  char there[8192];
  struct stat found;
  if (length >= sizeof there) return 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return 0;
  int is_so = fstat(fd, &found) == 0 && found.st_mode == (S_IFREG | 0644) && found.st_uid == owner && found.st_gid == owner &&
              read(fd, there, sizeof there) == (ssize_t)length && memcmp(there, text, length) == 0;
  close(fd);
  return is_so;
}

// file PATH OWNER TEXT: written anew unless nothing in it differs, as writing is the slower by far. The directory of such files is
// never reachable from inside.
static void write_file(char **arg) {
  uid_t owner = (uid_t)number(arg[1], 10);
  size_t length = strlen(arg[2]);
  if (is_as_wanted(arg[0], owner, arg[2], length)) return;
  int fd = open(arg[0], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) fail(arg[0]);
  if (write(fd, arg[2], length) != (ssize_t)length) fail(arg[0]);
  if (fchown(fd, owner, owner) < 0 || fchmod(fd, 0644) < 0) fail(arg[0]);
  close(fd);
}

// new-file PATH OWNER TEXT: written only if there is nothing in it yet. A power cut may leave one that is empty.
static void write_new_file(char **arg) {
  struct stat found;
  if (stat(arg[0], &found) < 0 || found.st_size == 0) write_file(arg);
}

// listen PATH GID: the runtime hands it on as descriptor 3. It accepts from now on, so nobody has to wait for PID 1. The group may
// connect; nobody but us can write in the directory, so the name is the socket's until we are through.
static void listen_at(char **arg) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(arg[0]) >= sizeof address.sun_path) refuse("the path of the socket is too long");
  strcpy(address.sun_path, arg[0]);
  if (unlink(arg[0]) < 0 && errno != ENOENT) fail(arg[0]);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) fail(arg[0]);
  mode_t before = umask(0177);
  if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, backlog) < 0) fail(arg[0]);
  umask(before);
  if (chown(arg[0], 0, (gid_t)number(arg[1], 10)) < 0 || chmod(arg[0], 0660) < 0) fail(arg[0]);
  if (fd == inherited_socket) {
    if (fcntl(fd, F_SETFD, 0) < 0) fail(arg[0]);
  } else {
    if (dup2(fd, inherited_socket) < 0) fail(arg[0]);
    close(fd);
  }
}

// child-of PID: dies with the runner that started it, and so does the runtime it becomes. A start that nobody waits for
// any more must not go on behind the back of the next runner's clean-up.
static void die_with(char **arg) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) fail("parent");
  if ((unsigned long long)getppid() != number(arg[0], 10)) refuse("the runner is gone");
}

// What a sandbox may have of /dev. The runtime binds these files of the /dev that it sees.
static const struct {
  const char *path;
  unsigned major, minor;
} devices[] = {
    {"/dev/null", 1, 3},   {"/dev/zero", 1, 5},    {"/dev/full", 1, 7},
    {"/dev/random", 1, 8}, {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0},
};

// Where this host lets nobody make devices, its own are used. crun gives the files that it is started on to the sandbox's
// root, who would then own the host's /dev/null, so that one is read-only.
static void keep_devices_of_host(void) {
  if (umount2("/dev", MNT_DETACH) < 0) fail("/dev");
  if (mount("/dev/null", "/dev/null", NULL, MS_BIND, NULL) < 0) fail("/dev/null");
  if (mount(NULL, "/dev/null", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC, NULL) < 0) fail("/dev/null");
}

// Devices with inodes of their own: by those of the host, sandboxes could watch each other and lock files for each other.
// Read-only, so that nobody comes to own one.
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

// private: mounts made from here on vanish with the sandbox and are never seen by the host.
static void enter_private_mounts(char **arg) {
  (void)arg;
  if (unshare(CLONE_NEWNS) < 0) fail("mount namespace");
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) fail("/");
  make_devices();
}

// sysfs NETNS PATH: mounts the /sys of a network namespace. Each has inodes of its own, and shows the network cards of that
// namespace only.
static void mount_sysfs(char **arg) {
  int host = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  int network = open(arg[0], O_RDONLY | O_CLOEXEC);
  if (host < 0 || network < 0 || setns(network, CLONE_NEWNET) < 0) fail(arg[0]);
  if (mount("sysfs", arg[1], "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) fail(arg[1]);
  if (setns(host, CLONE_NEWNET) < 0) fail("network namespace");
  close(network);
  close(host);
}

// own-time: what is started from here on has a time namespace of its own, with the clocks of the host. It is for the file in
// /proc that stands for the namespace, which sandboxes would share.
static void unshare_time(char **arg) {
  (void)arg;
  if (unshare(CLONE_NEWTIME) < 0 && errno != EINVAL) fail("time namespace");
}

// hide PATH: puts an empty directory before one mount (crun refuses a host with both cgroup versions). What crun makes
// there is gone with it. Unmounting would do as well, but waits for every processor.
static void hide(char **arg) {
  const char *options = "mode=0700,size=64k,nr_inodes=64";
  if (mount("tmpfs", arg[0], "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) < 0 && errno != ENOENT) fail(arg[0]);
}

// overlay OPTIONS PATH
// nosuid: a program that has been given more capabilities than a sandbox may have (ping of Debian) starts without them.
// Otherwise the kernel refuses to start it at all. Nothing is lost, as processes cannot gain privileges anyway.
static void mount_overlay(char **arg) {
  if (mount("overlay", arg[1], "overlay", MS_NODEV | MS_NOSUID, arg[0]) < 0) fail(arg[1]);
}

// bind FROM TO
static void mount_bind(char **arg) {
  if (mount(arg[0], arg[1], NULL, MS_BIND, NULL) < 0) fail(arg[0]);
}

static void write_to(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) fail(path);
  close(fd);
}

// ids MAP: by what `bind-mapped` maps owners from now on, from what is on the disk to what is seen, in lines as of uid_map
// (user_namespaces(7)). The kernel wants it as a user namespace, for which somebody has to be in it for a moment.
static void make_id_map(char **arg) {
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

// bind-mapped FROM TO: as `bind`, with owners as `ids` said (mount_setattr(2)). An owner without a place there is nobody.
static void mount_mapped(char **arg) {
  if (id_map < 0) refuse("ids come first");
  struct attributes mapped = {.set = attribute_idmap, .user_namespace = (uint64_t)id_map};
  int tree = (int)syscall(SYS_open_tree, AT_FDCWD, arg[0], open_tree_clone | O_CLOEXEC);
  if (tree < 0) fail(arg[0]);
  if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &mapped, sizeof mapped) < 0) fail(arg[0]);
  if (syscall(SYS_move_mount, tree, "", AT_FDCWD, arg[1], move_mount_from_empty_path) < 0) fail(arg[1]);
  close(tree);
}

// Whether two names in /proc mean the same namespace.
static int is_same_namespace(const char *one, const char *other) {
  struct stat a, b;
  if (stat(one, &a) < 0) fail(one);
  if (stat(other, &b) < 0) fail(other);
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// shm PID BYTES: the size of /dev/shm of a sandbox, seen as its first process sees it. Nobody inside may mount, nor move
// what a mount lies on, so the name means there what it meant when the sandbox was started. Fails where more is in use.
static void resize_shared_memory(char **arg) {
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

// read-only PATH: of what is mounted there.
static void make_read_only(char **arg) {
  if (mount(NULL, arg[0], NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) < 0) fail(arg[0]);
}

// What the kernel counts for whoever makes a user namespace, it counts for all sandboxes together: with the usual limits one could
// take all timers and message queues of the others. Their memory counts as the sandbox's. Without the right to raise it
// (CAP_SYS_RESOURCE) there are as many as our own hard limit says.
static void raise_shared_limit(int resource) {
  struct rlimit most = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  if (setrlimit(resource, &most) == 0 || getrlimit(resource, &most) < 0) return;
  most.rlim_cur = most.rlim_max;
  (void)setrlimit(resource, &most);
}

// When the whole host is short of memory, the kernel ends processes of sandboxes before those of the host. With the right to do
// so (CAP_SYS_RESOURCE) this also sets the least that a process inside may choose for itself.
static void stand_first_in_line(void) {
  const char score[] = "200";
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, score, sizeof score - 1) < 0) fail("oom_score_adj");
  close(fd);
}

// exec PROGRAM ARGUMENTS…: the last step. What it starts inherits the socket and nothing else of ours.
static _Noreturn void become(char **arg) {
  int quiet = open("/dev/null", O_RDWR | O_CLOEXEC);
  int spare = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
  if (quiet < 0 || spare < 0) fail("/dev/null");
  complaints = spare;
  for (int fd = 0; fd <= STDERR_FILENO; fd++)
    if (dup2(quiet, fd) < 0) fail("/dev/null");
  stand_first_in_line();
  raise_shared_limit(RLIMIT_SIGPENDING);
  raise_shared_limit(RLIMIT_MSGQUEUE);
  // What this program itself was handed by whoever started the runner goes no further either.
  (void)close_range(inherited_socket + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  execvp(arg[0], arg);
  fail(arg[0]);
}

static const struct step {
  const char *name;
  int arguments;
  void (*run)(char **arg);
} steps[] = {
    {"child-of", 1, die_with},
    {"subvolume", 1, make_subvolume},
    {"limit", 2, limit_subvolume},
    {"delete-subvolume", 1, delete_subvolume},
    {"snapshot", 2, make_snapshot},
    {"remove-tree", 1, remove_tree},
    {"forget-file", 2, forget_file},
    {"disarm", 3, disarm},
    {"rename", 2, rename_to},
    {"sync", 1, sync_to_disk},
    {"directory", 3, make_directory},
    {"file", 3, write_file},
    {"new-file", 3, write_new_file},
    {"listen", 2, listen_at},
    {"private", 0, enter_private_mounts},
    {"sysfs", 2, mount_sysfs},
    {"own-time", 0, unshare_time},
    {"hide", 1, hide},
    {"overlay", 2, mount_overlay},
    {"bind", 2, mount_bind},
    {"ids", 1, make_id_map},
    {"bind-mapped", 2, mount_mapped},
    {"shm", 2, resize_shared_memory},
    {"read-only", 1, make_read_only},
};

static const struct step *find_step(const char *name) {
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
    if (!strcmp(steps[i].name, name)) return &steps[i];
  refuse("no such step");
}

void run_steps(int count, char **arg) {
  umask(022);
  for (int at = 0; at < count;) {
    current_step = arg[at++];
    if (!strcmp(current_step, "exec")) {
      if (at == count) refuse("nothing to become");
      become(arg + at);
    }
    const struct step *step = find_step(current_step);
    if (at + step->arguments > count) refuse("too few arguments");
    step->run(arg + at);
    at += step->arguments;
  }
}

int main(int count, char **arg) {
  if (count > 1 && !strcmp(arg[1], "serve")) return serve(arg[2]);
  run_steps(count - 1, arg + 1);
  return 0;
}
