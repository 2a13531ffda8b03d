/*
 * FILE_WRITE: receives the whole file before anything is changed. The data goes into a file without a name, and the kernel removes
 * this file if the peer disconnects. If the path is new, this file then gets its name.
 *
 * An existing file is written in place, so it keeps its inode, its other names and its watchers. It is opened with the user's
 * rights and without following a link, so it does not help an attacker to replace the file by a link. If the file system can share
 * blocks (FICLONE), the contents change in one step. Otherwise the agent reserves space and copies the contents.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "file_server.h"
#include "make_directories.h"
#include "operations.h"
#include "ring.h"

#define PIECE (256u * 1024u)

#define SHARE_CONTENTS _IOW(0x94, 9, int) /* FICLONE of <linux/fs.h>, which conflicts with the headers of some C libraries */
#define LARGEST_BLOCK 65536
#define WRITTEN_AT_ONCE (8 * 1024 * 1024)
#define LINKS_MAX 40

static struct {
  /* `elsewhere`: the directory of the temporary file, so that programs that watch `directory` get no event for that file. */
  int directory, elsewhere, fd;
  bool has_name;
  int parents_made;
  char temporary[48];
  char *name;
} file;

static void remove_temporary(void) { unlinkat(file.elsewhere, file.temporary, 0); }

static void open_parent(const char *path) {
  char *parent = strdup(path), *last = strdup(path);
  if (!parent || !last) peer_fail(STAGE_FILE, ENOMEM);
  if (*path == 0) peer_fail(STAGE_FILE, ENOENT);
  file.name = basename(last);
  if (path[strlen(path) - 1] == '/' || strcmp(file.name, ".") == 0 || strcmp(file.name, "..") == 0 || *file.name == '/')
    peer_fail(STAGE_FILE, EISDIR);
  file.directory = open(dirname(parent), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (file.directory < 0) peer_fail(STAGE_FILE, errno);
}

/* Returns the target of the path if its last part is a link; otherwise NULL. */
static char *follow_link(const char *path) {
  char target[PATH_MAX], *parent = strdup(path), *followed;
  ssize_t length = readlinkat(file.directory, file.name, target, sizeof target - 1);
  if (length < 0) return NULL;
  target[length] = 0;
  /* Check the access first: the kernel then refuses a loop, and a link that the user may not follow (fs.protected_symlinks). */
  if (faccessat(file.directory, file.name, F_OK, 0) < 0 && errno != ENOENT) peer_fail(STAGE_FILE, errno);
  if (!parent || asprintf(&followed, "%s%s%s", *target == '/' ? "" : dirname(parent), *target == '/' ? "" : "/", target) < 0)
    peer_fail(STAGE_FILE, ENOMEM);
  return followed;
}

/* Sets the variable `file` to the path, or to the target of the links in the path. The file need not exist yet. */
static void find_place(char *path, bool makes_parents) {
  for (int links = 0; path; links++) {
    if (links > LINKS_MAX) peer_fail(STAGE_FILE, ELOOP);
    int made = makes_parents ? make_parents(path) : 0;
    if (made < 0) peer_fail(STAGE_FILE, errno);
    file.parents_made += made;
    open_parent(path);
    path = follow_link(path);
  }
}

/*
 * Whether another user may have created the file, to read what the caller writes. This is possible in a sticky directory such as
 * /tmp. Many kernels refuse such writes as well (fs.protected_regular).
 */
static bool is_trap(const struct stat *old) {
  struct stat directory;
  uid_t self = geteuid();
  if (fstat(file.directory, &directory) < 0) return true;
  return (directory.st_mode & S_ISVTX) && self != 0 && old->st_uid != self && directory.st_uid != self;
}

/* Examines the existing file. Returns false if it does not exist yet. */
static bool look_at_old(struct stat *old) {
  if (fstatat(file.directory, file.name, old, AT_SYMLINK_NOFOLLOW) < 0) {
    if (errno != ENOENT) peer_fail(STAGE_FILE, errno);
    return false;
  }
  if (!S_ISREG(old->st_mode)) peer_fail(STAGE_FILE, S_ISDIR(old->st_mode) ? EISDIR : EINVAL);
  /* Check the right to write before the data is received. */
  if (faccessat(file.directory, file.name, W_OK, 0) < 0) peer_fail(STAGE_FILE, errno);
  if (is_trap(old)) peer_fail(STAGE_FILE, EPERM);
  return true;
}

/* Opens a file with a temporary name, because before Linux 6.3 an overlay does not support files without a name. */
static bool open_named(void) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) random = (uint64_t)getpid();
  snprintf(file.temporary, sizeof file.temporary, ".alcove-upload-%016llx", (unsigned long long)random);
  file.fd = openat(file.elsewhere, file.temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file.fd < 0) return false;
  file.has_name = true;
  peer_at_end(remove_temporary);
  return true;
}

/* Returns true if new files in the directory get the directory's group, or an access list from it (acl(5), "default ACL"). */
static bool directory_gives_rights(const struct stat *directory) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file.directory);
  return (directory->st_mode & S_ISGID) || getxattr(path, "system.posix_acl_default", NULL, 0) > 0;
}

/*
 * Prefers /var/tmp for the temporary file, so that watchers of the final directory get no event. Both directories must be on one
 * device. On an overlay, the device of a file may differ from the device of its directory. So this function compares the
 * directories.
 */
static void find_elsewhere(bool exists) {
  struct stat here, there;
  file.elsewhere = file.directory;
  if (fstat(file.directory, &here) < 0 || (!exists && directory_gives_rights(&here))) return;
  int fd = open("/var/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  if (fstat(fd, &there) == 0 && there.st_dev == here.st_dev && faccessat(fd, ".", W_OK | X_OK, 0) == 0) file.elsewhere = fd;
  else close(fd);
}

/* Opens a temporary file for the new contents. Returns false with errno if the directory accepts no new file. */
static bool open_new(bool exists) {
  if (!exists && faccessat(file.directory, ".", W_OK | X_OK, 0) < 0) return false;
  find_elsewhere(exists);
  file.fd = openat(file.elsewhere, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file.fd >= 0) return true;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return false;
  return open_named();
}

static uint8_t piece[PIECE];

static void write_out(int fd, const uint8_t *bytes, size_t size) {
  while (size > 0) {
    ssize_t written = write(fd, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) peer_fail(STAGE_FILE, errno);
    bytes += written;
    size -= (size_t)written;
  }
}

static void read_whole(uint8_t *into, size_t size) {
  for (size_t got; size > 0; into += got, size -= got) got = peer_read(into, size);
}

/*
 * Starts writing new bytes to the disk, so that the final sync takes less time. POSIX_FADV_DONTNEED starts the writing, and drops
 * only bytes that are on the disk already. sync_file_range() would have no effect on an overlay.
 */
static void begin_writing(off_t from, off_t to) { posix_fadvise(file.fd, from, to - from, POSIX_FADV_DONTNEED); }

static void receive(void) {
  off_t received = 0, begun = 0;
  for (;;) {
    uint8_t header[FRAME_HEADER];
    read_whole(header, sizeof header);
    uint32_t left = get_u32(header);
    if (header[4] == KIND_STDIN_END && left == 0) return;
    if (header[4] != KIND_STDIN || left > FRAME_MAX) peer_fail(STAGE_PROTOCOL, EPROTO);
    while (left > 0) {
      size_t got = peer_read(piece, left < PIECE ? left : PIECE);
      write_out(file.fd, piece, got);
      left -= (uint32_t)got;
      received += (off_t)got;
      if (received - begun < WRITTEN_AT_ONCE) continue;
      begin_writing(begun, received);
      begun = received;
    }
  }
}

/*
 * Makes the new name and the new parent directories survive a power cut. Stops at a directory that cannot be opened for reading.
 */
static void sync_directory(void) {
  int fd = openat(file.directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int left = file.parents_made; fd >= 0; left--) {
    fsync(fd);
    int above = left > 0 ? openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    close(fd);
    fd = above;
  }
}

static bool name_it(int directory, const char *name) {
  char descriptor[32];
  snprintf(descriptor, sizeof descriptor, "/proc/self/fd/%d", file.fd);
  return linkat(AT_FDCWD, descriptor, directory, name, AT_SYMLINK_FOLLOW) == 0;
}

/* Causes the event IN_CLOSE_WRITE for the file's final name, because watchers wait for it to know that a file is complete. */
static void tell_watchers(void) {
  int fd = openat(file.directory, file.name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd >= 0) close(fd);
}

/*
 * Makes an empty file with the final name. If the temporary file is on another mount, it cannot get this name by a hard link, so
 * its contents are then put into the empty file.
 */
static void keep_name(void) {
  int fd = openat(file.directory, file.name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0 && errno != EEXIST) peer_fail(STAGE_FILE, errno);
  if (fd >= 0) close(fd);
}

/* Gives the temporary file its final name. Returns false if a file of that name must be written in place instead. */
static bool become_new(uint32_t mode) {
  if (fchmod(file.fd, mode == KEEP_MODE ? 0644 : mode) < 0 || fsync(file.fd) < 0) peer_fail(STAGE_FILE, errno);
  if (!name_it(file.directory, file.name)) {
    if (errno == EXDEV) keep_name();
    else if (errno != EEXIST) peer_fail(STAGE_FILE, errno);
    return false;
  }
  sync_directory();
  tell_watchers();
  return true;
}

/* The kernel refuses writes to the file of a running program, so a new file replaces that file. */
static void replace_program(const struct stat *old, uint32_t mode) {
  if (mode == KEEP_MODE) mode = old->st_mode & 07777;
  /* Only root may change the owner. Without root, the file stays the user's, so drop the bits setuid, setgid and sticky. */
  if (fchown(file.fd, old->st_uid, old->st_gid) < 0) mode &= 0777;
  if (fchmod(file.fd, mode) < 0 || fsync(file.fd) < 0) peer_fail(STAGE_FILE, errno);
  if (!file.has_name) {
    snprintf(file.temporary, sizeof file.temporary, ".alcove-upload-%d", (int)getpid());
    if (!name_it(file.elsewhere, file.temporary)) peer_fail(STAGE_FILE, ETXTBSY);
    file.has_name = true;
    peer_at_end(remove_temporary);
  }
  if (renameat(file.elsewhere, file.temporary, file.directory, file.name) < 0) peer_fail(STAGE_FILE, errno);
  file.has_name = false;
  peer_at_end(NULL);
  sync_directory();
}

/* Reserves space, so that a full disk is noticed before the copy. Does nothing if the file system cannot reserve space. */
static void keep_room(int fd, off_t size, off_t old_size) {
  if (size == 0 || fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, size) == 0) return;
  int reason = errno;
  if (reason != ENOSPC && reason != EDQUOT && reason != EFBIG) return;
  if (ftruncate(fd, old_size) < 0) reason = errno; /* some space may have been reserved already */
  peer_fail(STAGE_FILE, reason);
}

/*
 * Makes the file `fd` share the disk blocks of the new contents, in one step. So readers see only the old or only the new contents.
 * Returns false if the file system cannot share blocks.
 */
static bool share_contents(int fd, off_t size, off_t old_size) {
  bool is_longer = old_size > size;
  /*
   * If the old file is longer than the new contents, the kernel shares only whole blocks. So zeros fill the last block of the
   * temporary file. The caller later removes these zeros.
   */
  off_t whole_blocks = (size + LARGEST_BLOCK - 1) / LARGEST_BLOCK * LARGEST_BLOCK;
  if (is_longer && ftruncate(file.fd, whole_blocks) < 0) return false;
  bool is_shared = ioctl(fd, SHARE_CONTENTS, file.fd) == 0;
  if (!is_shared && is_longer && ftruncate(file.fd, size) < 0) peer_fail(STAGE_FILE, errno);
  return is_shared;
}

static void copy_contents(int fd, off_t size, off_t old_size) {
  keep_room(fd, size, old_size);
  for (off_t at = 0; at < size;) {
    ssize_t got = pread(file.fd, piece, sizeof piece, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) peer_fail(STAGE_FILE, got < 0 ? errno : EIO);
    write_out(fd, piece, (size_t)got);
    at += got;
  }
}

static void write_in_place(uint32_t mode) {
  struct stat there;
  int fd = openat(file.directory, file.name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 && errno == ETXTBSY && fstatat(file.directory, file.name, &there, AT_SYMLINK_NOFOLLOW) == 0) {
    replace_program(&there, mode);
    return;
  }
  if (fd < 0) peer_fail(STAGE_FILE, errno == ENXIO ? EINVAL : errno);
  if (fstat(fd, &there) < 0) peer_fail(STAGE_FILE, errno);
  if (!S_ISREG(there.st_mode)) peer_fail(STAGE_FILE, EINVAL);
  /* Lock the file, because two uploads to one file at the same time would mix their contents. */
  if (!peer_lock(there.st_ino)) peer_fail(STAGE_FILE, errno);
  off_t size = lseek(file.fd, 0, SEEK_END);
  if (size < 0 || fstat(fd, &there) < 0) peer_fail(STAGE_FILE, errno);
  if (mode != KEEP_MODE && mode != (there.st_mode & 07777) && fchmod(fd, mode) < 0) peer_fail(STAGE_FILE, errno);
  if (!share_contents(fd, size, there.st_size)) copy_contents(fd, size, there.st_size);
  /* fsync fails with EINVAL if the file is not stored on a disk. */
  if (ftruncate(fd, size) < 0 || (fsync(fd) < 0 && errno != EINVAL)) peer_fail(STAGE_FILE, errno);
  close(fd); /* close before the answer is sent, so that watchers get the close event before the caller continues */
}

static void serve_write(struct fields *request) {
  char *path = take_string(request);
  uint32_t mode = take_u32(request);
  uint8_t flags = take_u8(request);
  check_complete(request);
  if (flags > WRITE_PARENTS || (mode != KEEP_MODE && mode > 07777)) peer_fail(STAGE_PROTOCOL, EPROTO);
  struct stat old;
  find_place(path, flags & WRITE_PARENTS);
  bool exists = look_at_old(&old);
  if (!open_new(exists)) {
    if (!exists || (errno != EACCES && errno != EPERM && errno != EROFS)) peer_fail(STAGE_FILE, errno);
    file.fd = ring_storage();
    if (file.fd < 0) peer_fail(STAGE_FILE, errno);
  }
  peer_send(KIND_OK, NULL, 0);
  receive();
  if (exists || !become_new(mode)) write_in_place(mode);
  close(file.fd); /* a program that is still open for writing cannot be started (ETXTBSY) */
  peer_send(KIND_END, NULL, 0);
}

void file_write_start(struct connection *connection, struct fields *request) {
  file_server_start(connection, request, serve_write);
}
