/*
 * FILE_WRITE: a file is replaced as a whole or not at all. What comes goes into a new file beside it, which takes its
 * place when everything is on the disk; if the peer goes first, the new file is removed.
 *
 * Where the kernel lets none take its place (a mount point, as /etc/hosts is; a directory that is not the user's), the file
 * itself is written, as a shell would, but not before all is there and has room. It is opened then with the rights of the
 * user and without following a link, so that whoever exchanges it meanwhile gains nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_server.h"
#include "make_directories.h"
#include "operations.h"
#include "ring.h"

#define PIECE (256u * 1024u)

static struct {
  int directory, fd;
  char temporary[48];
  const char *name;
} file;

static void remove_temporary(void) { unlinkat(file.directory, file.temporary, 0); }

/* A link is written through, as a shell would; one that leads nowhere is replaced. */
static void find_place(const char *path) {
  char *followed = realpath(path, NULL);
  char *target = followed ? followed : strdup(path);
  char *parent = target ? strdup(target) : NULL;
  if (!target || !parent) peer_fail(STAGE_FILE, ENOMEM);
  size_t size = strlen(target);
  if (size == 0) peer_fail(STAGE_FILE, ENOENT);
  file.name = basename(target);
  if (path[strlen(path) - 1] == '/' || strcmp(file.name, ".") == 0 || strcmp(file.name, "..") == 0 || *file.name == '/')
    peer_fail(STAGE_FILE, EISDIR);
  file.directory = open(dirname(parent), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (file.directory < 0) peer_fail(STAGE_FILE, errno);
}

/* False when there is nothing yet. */
static bool look_at_old(struct stat *old) {
  if (fstatat(file.directory, file.name, old, AT_SYMLINK_NOFOLLOW) < 0) {
    if (errno != ENOENT) peer_fail(STAGE_FILE, errno);
    return false;
  }
  if (S_ISLNK(old->st_mode)) return false;
  if (!S_ISREG(old->st_mode)) peer_fail(STAGE_FILE, S_ISDIR(old->st_mode) ? EISDIR : EINVAL);
  /* Replacing asks only for the directory; whoever may not write the file shall not do it this way either. */
  if (faccessat(file.directory, file.name, W_OK, 0) < 0) peer_fail(STAGE_FILE, errno);
  return true;
}

/* False, with errno, where the directory takes no new file. */
static bool open_temporary(void) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) random = (uint64_t)getpid();
  snprintf(file.temporary, sizeof file.temporary, ".alcove-upload-%016llx", (unsigned long long)random);
  file.fd = openat(file.directory, file.temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file.fd < 0) return false;
  peer_at_end(remove_temporary);
  return true;
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

static void receive(void) {
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
    }
  }
}

/* The new name is as durable as the contents, where the directory may be read at all. */
static void sync_directory(void) {
  int fd = openat(file.directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

/*
 * False where the old one is a mount point. In a sticky directory (EPERM) it is another user's, who may have put it there to
 * get what is meant for a new one; the kernel would not let a shell write it either (fs.protected_regular).
 */
static bool take_place(const struct stat *old, uint32_t mode) {
  if (mode == KEEP_MODE) mode = old ? old->st_mode & 07777 : 0644;
  /* Only root may give files away; otherwise it is now the user's, without the rights that came with the old owner. */
  if (old && fchown(file.fd, old->st_uid, old->st_gid) < 0) mode &= 0777;
  if (fchmod(file.fd, mode) < 0 || fsync(file.fd) < 0) peer_fail(STAGE_FILE, errno);
  if (renameat(file.directory, file.temporary, file.directory, file.name) < 0) {
    if (!old || errno != EBUSY) peer_fail(STAGE_FILE, errno);
    return false;
  }
  peer_at_end(NULL);
  sync_directory();
  return true;
}

/* A full disk must not be found out in the middle; a file system that cannot promise room is only tried. */
static void keep_room(int fd, off_t size, off_t old_size) {
  if (size == 0 || fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, size) == 0) return;
  int reason = errno;
  if (reason != ENOSPC && reason != EDQUOT && reason != EFBIG) return;
  if (ftruncate(fd, old_size) < 0) reason = errno; /* some of it may be taken already */
  peer_fail(STAGE_FILE, reason);
}

static void write_in_place(uint32_t mode) {
  int fd = openat(file.directory, file.name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) peer_fail(STAGE_FILE, errno == ENXIO ? EINVAL : errno);
  struct stat there;
  off_t size = lseek(file.fd, 0, SEEK_END);
  if (size < 0 || fstat(fd, &there) < 0) peer_fail(STAGE_FILE, errno);
  if (!S_ISREG(there.st_mode)) peer_fail(STAGE_FILE, EINVAL);
  if (mode != KEEP_MODE && mode != (there.st_mode & 07777) && fchmod(fd, mode) < 0) peer_fail(STAGE_FILE, errno);
  keep_room(fd, size, there.st_size);
  for (off_t at = 0; at < size;) {
    ssize_t got = pread(file.fd, piece, sizeof piece, at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) peer_fail(STAGE_FILE, got < 0 ? errno : EIO);
    write_out(fd, piece, (size_t)got);
    at += got;
  }
  /* EINVAL: nothing of this file is on a disk. */
  if (ftruncate(fd, size) < 0 || (fsync(fd) < 0 && errno != EINVAL)) peer_fail(STAGE_FILE, errno);
}

static void serve_write(struct fields *request) {
  char *path = take_string(request);
  uint32_t mode = take_u32(request);
  uint8_t flags = take_u8(request);
  check_complete(request);
  if (flags > WRITE_PARENTS || (mode != KEEP_MODE && mode > 07777)) peer_fail(STAGE_PROTOCOL, EPROTO);
  if ((flags & WRITE_PARENTS) && !make_parents(path)) peer_fail(STAGE_FILE, errno);
  struct stat old;
  find_place(path);
  bool exists = look_at_old(&old);
  bool is_beside = open_temporary();
  if (!is_beside) {
    if (!exists || (errno != EACCES && errno != EPERM && errno != EROFS)) peer_fail(STAGE_FILE, errno);
    file.fd = ring_storage();
    if (file.fd < 0) peer_fail(STAGE_FILE, errno);
  }
  peer_send(KIND_OK, NULL, 0);
  receive();
  if (!is_beside || !take_place(exists ? &old : NULL, mode)) {
    write_in_place(mode);
    if (is_beside) remove_temporary();
    peer_at_end(NULL);
  }
  peer_send(KIND_END, NULL, 0);
}

void file_write_start(struct connection *connection, struct fields *request) {
  file_server_start(connection, request, serve_write);
}
