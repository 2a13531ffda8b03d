/* FILE_STAT, FILE_LIST, FILE_READ: read files and directories. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "accounts.h"
#include "file_server.h"
#include "operations.h"

#define DEPTH_MAX 64u
#define RELATIVE_MAX 16384u
#define NAME_ROOM 256u
#define WITHOUT_SIZE_MAX (1024u * 1024u) /* maximum in bytes for files without a known size, as in /proc */

/* ---- describing a file ---- */

static uint8_t type_of(mode_t mode) {
  static const mode_t types[] = {S_IFREG, S_IFDIR, S_IFLNK, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK};
  for (uint8_t i = 0; i < sizeof types / sizeof *types; i++)
    if ((mode & S_IFMT) == types[i]) return i;
  return 0;
}

static uint8_t *put_account(uint8_t *at, const char *file, uint32_t id) {
  const char *name = account_name(file, id);
  return put_string(at, name, strnlen(name, NAME_ROOM));
}

// Returns the modification time in milliseconds. The time is capped, because a file may have any 64-bit number of seconds.
static int64_t modified_at(const struct timespec *time) {
  static const int64_t most = INT64_MAX / 1000 - 1;
  int64_t seconds = time->tv_sec > most ? most : time->tv_sec < -most ? -most : time->tv_sec;
  return seconds * 1000 + time->tv_nsec / 1000000;
}

static void send_entry(int at, const char *name, const char *path, size_t path_size, const struct stat *stat) {
  static uint8_t payload[RELATIVE_MAX + 4096 + 4 * NAME_ROOM];
  static char target[4096];
  ssize_t target_size = S_ISLNK(stat->st_mode) ? readlinkat(at, name, target, sizeof target) : 0;
  uint8_t *end = payload;
  *end++ = type_of(stat->st_mode);
  end = put_u32(end, stat->st_mode & 07777);
  end = put_u64(end, (uint64_t)stat->st_size);
  end = put_u64(end, (uint64_t)modified_at(&stat->st_mtim));
  end = put_u32(end, stat->st_uid);
  end = put_u32(end, stat->st_gid);
  end = put_account(end, "/etc/passwd", stat->st_uid);
  end = put_account(end, "/etc/group", stat->st_gid);
  end = put_string(end, path, path_size);
  end = put_string(end, target, target_size > 0 ? (size_t)target_size : 0);
  peer_send(KIND_ENTRY, payload, (uint32_t)(end - payload));
}

static void serve_stat(struct fields *request) {
  const char *path = take_string(request);
  uint8_t follow = take_u8(request);
  check_complete(request);
  struct stat stat;
  if (fstatat(AT_FDCWD, path, &stat, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0) peer_fail(STAGE_FILE, errno);
  peer_send(KIND_OK, NULL, 0);
  send_entry(AT_FDCWD, path, "", 0, &stat);
}

/* ---- listing a directory ---- */

static char relative[RELATIVE_MAX];

/* Lists a directory and closes it. Subdirectories that cannot be opened are listed but not entered. */
static void list_directory(int fd, size_t prefix, uint32_t depth) {
  DIR *directory = fdopendir(fd);
  if (!directory) {
    close(fd);
    return;
  }
  for (struct dirent *entry; (entry = readdir(directory));) {
    const char *name = entry->d_name;
    size_t size = strlen(name);
    struct stat stat;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || prefix + size + 2 > sizeof relative) continue;
    if (fstatat(dirfd(directory), name, &stat, AT_SYMLINK_NOFOLLOW) < 0) continue;
    memcpy(relative + prefix, name, size);
    send_entry(dirfd(directory), name, relative, prefix + size, &stat);
    if (!S_ISDIR(stat.st_mode) || depth <= 1) continue;
    int below = openat(dirfd(directory), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below < 0) continue;
    relative[prefix + size] = '/';
    list_directory(below, prefix + size + 1, depth - 1);
  }
  closedir(directory);
}

static void serve_list(struct fields *request) {
  const char *path = take_string(request);
  uint32_t depth = take_u32(request);
  check_complete(request);
  if (depth < 1 || depth > DEPTH_MAX) peer_fail(STAGE_PROTOCOL, ERANGE);
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) peer_fail(STAGE_FILE, errno);
  peer_send(KIND_OK, NULL, 0);
  list_directory(fd, 0, depth);
  peer_send(KIND_END, NULL, 0);
}

/* ---- reading a file ---- */

/*
 * Buffer for the beginning of a file that a peer reads. The size from `fstat` may be wrong: too large in /sys, or if another
 * process shortens the file. So the agent first reads CHUNK bytes. If the file ends earlier, the agent ignores that size.
 */
static uint8_t beginning[WITHOUT_SIZE_MAX + 1];

static void say_length(uint64_t size, uint64_t length) {
  uint8_t payload[16];
  put_u64(put_u64(payload, size), length);
  peer_send(KIND_OK, payload, sizeof payload);
  peer_flush();
}

/* Sends the contents of the file. The peer detects contents that are shorter than the announced length. */
static void send_contents(int fd, off_t offset, uint64_t length) {
  static uint8_t bytes[CHUNK];
  while (length > 0) {
    ssize_t sent = sendfile(PEER, fd, &offset, length < (1u << 30) ? (size_t)length : 1u << 30);
    if (sent < 0 && (errno == EINVAL || errno == ENOSYS)) {
      sent = pread(fd, bytes, length < sizeof bytes ? (size_t)length : sizeof bytes, offset);
      if (sent > 0) peer_write(bytes, (size_t)sent);
      if (sent > 0) offset += sent;
    }
    if (sent <= 0) return;
    length -= (uint64_t)sent;
  }
}

/* Reads further bytes of a file whose first `have` bytes were read, until `most` bytes are read or the file ends. */
static size_t read_on(int fd, size_t have, size_t most) {
  while (have < most) {
    ssize_t got = read(fd, beginning + have, most - have);
    if (got < 0) peer_fail(STAGE_FILE, errno);
    if (got == 0) break;
    have += (size_t)got;
  }
  return have;
}

static void serve_read(struct fields *request) {
  const char *path = take_string(request);
  uint64_t offset = take_u64(request), length = take_u64(request);
  check_complete(request);
  /* Opening a fifo or a device could wait. A check before the open would not help: another file could replace the checked one. */
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  struct stat stat;
  if (fd < 0) peer_fail(STAGE_FILE, errno == ENXIO ? EINVAL : errno);
  if (fstat(fd, &stat) < 0) peer_fail(STAGE_FILE, errno);
  if (!S_ISREG(stat.st_mode)) peer_fail(STAGE_FILE, S_ISDIR(stat.st_mode) ? EISDIR : EINVAL);
  size_t have = read_on(fd, 0, CHUNK);
  bool is_whole = have < CHUNK;
  if (fstat(fd, &stat) < 0) peer_fail(STAGE_FILE, errno);
  /* If the size is too small, as in /proc, the agent ignores it and reads the file to its end. */
  if (!is_whole && stat.st_size < (off_t)have) {
    have = read_on(fd, have, sizeof beginning);
    if (have > WITHOUT_SIZE_MAX) peer_fail(STAGE_FILE, EFBIG);
    is_whole = true;
  }
  uint64_t size = is_whole ? have : (uint64_t)stat.st_size;
  if (offset > size) offset = size;
  if (length > size - offset) length = size - offset;
  say_length(size, length);
  if (is_whole) peer_write(beginning + offset, (size_t)length);
  else send_contents(fd, (off_t)offset, length);
}

void file_stat_start(struct connection *connection, struct fields *request) {
  file_server_start(connection, request, serve_stat);
}

void file_list_start(struct connection *connection, struct fields *request) {
  file_server_start(connection, request, serve_list);
}

void file_read_start(struct connection *connection, struct fields *request) {
  file_server_start(connection, request, serve_read);
}
