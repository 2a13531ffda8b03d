// Steps of the launcher (launch.c) that make, copy and remove disks. A disk is a btrfs subvolume with files in it.
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/btrfs.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "launch.h"

// Opens the parent directory of `path`, and points `name` at the last part of `path`.
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

// subvolume PATH: makes an empty subvolume. Does nothing if the subvolume exists.
void make_subvolume(char **arg) {
  const char *name;
  struct btrfs_ioctl_vol_args args;
  int parent = open_parent(arg[0], &name);
  name_subvolume(&args, name);
  if (ioctl(parent, BTRFS_IOC_SUBVOL_CREATE, &args) < 0 && errno != EEXIST) fail(arg[0]);
  close(parent);
}

// limit PATH BYTES: limits the amount of data in a subvolume, including data that the subvolume shares with snapshots.
void limit_subvolume(char **arg) {
  int fd = open(arg[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail(arg[0]);
  struct btrfs_ioctl_qgroup_limit_args args;
  memset(&args, 0, sizeof args); // qgroup 0 means the quota group of the subvolume itself
  args.lim.flags = BTRFS_QGROUP_LIMIT_MAX_RFER;
  args.lim.max_rfer = number(arg[1], 10);
  if (ioctl(fd, BTRFS_IOC_QGROUP_LIMIT, &args) < 0) fail(arg[0]);
  close(fd);
}

// delete-subvolume PATH: removes a subvolume. It disappears immediately; the kernel frees its space in the background.
void delete_subvolume(char **arg) {
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
    // Remove the subvolume's quota group: an older kernel keeps it forever. A newer kernel has removed the group already, so
    // ignore an error.
    struct btrfs_ioctl_qgroup_create_args group = {.create = 0, .qgroupid = info.treeid};
    (void)ioctl(parent, BTRFS_IOC_QGROUP_CREATE, &group);
  }
  close(parent);
}

// snapshot FROM TO: makes a subvolume with the present contents of another subvolume. The duration does not depend on the size.
void make_snapshot(char **arg) {
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

// remove-tree PATH: removes a directory with its contents. Use it only if no other process can reach this directory.
void remove_tree(char **arg) {
  if (nftw(arg[0], remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) < 0 && errno != ENOENT) fail(arg[0]);
}

// The ids that files of a sandbox may have on the disk, as set by `disarm`: `id_count` ids from `first_id` on.
static uid_t first_id, id_count;

static int is_of_sandbox(uid_t id) { return id >= first_id && id - first_id < id_count; }

// The capability of a file contains the uid of a root user (vfs_ns_cap_data). The capability works only in user namespaces with
// this root user. So a capability with a uid of the sandbox is harmless.
static int is_harmless_capability(const uint32_t *data, ssize_t size) {
  const uint32_t version = 3;
  return size == 6 * sizeof *data && le32toh(data[0]) >> 24 == version && is_of_sandbox(le32toh(data[5]));
}

// Whether an overlay's record of a renamed directory is harmless: one name, or a path from the image's root without `.` and `..`.
static int is_harmless_redirect(const char *value, ssize_t size) {
  int is_path = size > 0 && value[0] == '/';
  ssize_t begin = is_path;
  for (ssize_t at = begin; at <= size; at++) {
    if (at < size && value[at] == '\0') return 0;
    if (at < size && value[at] != '/') continue;
    if (at < size && !is_path) return 0;
    if (at == begin || (at - begin == 1 && value[begin] == '.') ||
        (at - begin == 2 && value[begin] == '.' && value[begin + 1] == '.'))
      return 0;
    begin = at + 1;
  }
  return 1;
}

static void disarm_overlay(const char *name, const char *path, const struct stat *status) {
  char value[4096];
  if (lremovexattr(name, "trusted.overlay.metacopy") < 0 && errno != ENODATA && errno != EOPNOTSUPP) fail(path);
  ssize_t size = lgetxattr(name, "trusted.overlay.redirect", value, sizeof value);
  if (size < 0 && (errno == ENODATA || errno == EOPNOTSUPP)) return;
  if (size < 0 && errno != ERANGE) fail(path);
  if (size >= 0 && S_ISDIR(status->st_mode) && is_harmless_redirect(value, size)) return;
  if (lremovexattr(name, "trusted.overlay.redirect") < 0) fail(path);
}

static int disarm_one(const char *path, const struct stat *status, int type, struct FTW *walk) {
  (void)type;
  uint32_t data[16];
  const char *name = path + walk->base;
  // nftw changes into the directory of each entry, so the last part of the path is enough, except at the top of the tree.
  if (walk->level == 0) name = path;
  ssize_t size = lgetxattr(name, "security.capability", data, sizeof data);
  if ((size >= 0 && !is_harmless_capability(data, size)) || (size < 0 && errno == ERANGE)) {
    if (lremovexattr(name, "security.capability") < 0) fail(path);
  } else if (size < 0 && errno != ENODATA && errno != EOPNOTSUPP) {
    fail(path);
  }
  disarm_overlay(name, path, status);
  // Remove devices, except a character device with the number 0, 0, which in an overlay means that a file was removed.
  int is_device = S_ISBLK(status->st_mode) || (S_ISCHR(status->st_mode) && status->st_rdev != 0);
  if (is_device && unlink(name) < 0) fail(path);
  mode_t rights = status->st_mode & 07777;
  if (S_ISREG(status->st_mode) && (rights & (S_ISUID | S_ISGID)) && !is_of_sandbox(status->st_uid) &&
      chmod(name, rights & 01777) < 0)
    fail(path);
  return 0;
}

// disarm PATH FIRST COUNT: removes from PATH what a sandbox with the ids FIRST to FIRST + COUNT - 1 could not have made. These are
// devices, set-id bits of files with other owners, file capabilities that work outside of the sandbox, and attributes that Alcove's
// overlays do not set. No other process may reach PATH meanwhile.
void disarm(char **arg) {
  first_id = (uid_t)number(arg[1], 10);
  id_count = (uid_t)number(arg[2], 10);
  if (nftw(arg[0], disarm_one, 16, FTW_PHYS | FTW_MOUNT | FTW_CHDIR) < 0) fail(arg[0]);
}

// forget-file DIRECTORY PATH: removes one file below a directory that a sandbox filled. Follows no links, and removes nothing but
// a file.
void forget_file(char **arg) {
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
