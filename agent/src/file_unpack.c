/*
 * FILE_UNPACK: receives files, directories and links as records of one stream, and creates each immediately. A file or link
 * replaces an existing file or link. An existing directory stays as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "accounts.h"
#include "file_server.h"
#include "make_directories.h"
#include "operations.h"

#define PIECE (256u * 1024u)
#define RECORD_HEAD 37u

enum record { RECORD_FILE = 0, RECORD_DIRECTORY = 1, RECORD_LINK = 2, RECORD_HARD_LINK = 3 };

struct entry {
  uint8_t type;
  mode_t mode;
  uid_t uid;
  gid_t gid;
  int64_t modified;
  uint64_t size;
  char path[PATH_MAX], target[PATH_MAX];
};

static uint32_t frame_left;
static uid_t owner;
static gid_t group;

/* Reads some bytes of the stream. Returns 0 at the end of the stream. */
static size_t take_some(uint8_t *into, size_t size) {
  while (frame_left == 0) {
    uint8_t header[FRAME_HEADER];
    for (size_t have = 0; have < sizeof header;) have += peer_read(header + have, sizeof header - have);
    frame_left = get_u32(header);
    if (header[4] == KIND_STDIN_END && frame_left == 0) return 0;
    if (header[4] != KIND_STDIN || frame_left > FRAME_MAX) peer_fail(STAGE_PROTOCOL, EPROTO);
  }
  size_t got = peer_read(into, size < frame_left ? size : frame_left);
  frame_left -= (uint32_t)got;
  return got;
}

/* Fills `into` from the stream. Returns false at the end of the stream. The stream may end only between records. */
static bool take_whole(uint8_t *into, size_t size) {
  for (size_t have = 0, got; have < size; have += got) {
    got = take_some(into + have, size - have);
    if (got == 0 && have == 0) return false;
    if (got == 0) peer_fail(STAGE_PROTOCOL, EPROTO);
  }
  return true;
}

static void take_rest(uint8_t *into, size_t size) {
  if (size > 0 && !take_whole(into, size)) peer_fail(STAGE_PROTOCOL, EPROTO);
}

static void take_path(char *into, uint32_t size) {
  if (size >= PATH_MAX) peer_fail(STAGE_FILE, ENAMETOOLONG);
  take_rest((uint8_t *)into, size);
  into[size] = 0;
  if (strlen(into) != size) peer_fail(STAGE_PROTOCOL, EPROTO);
}

static bool take_entry(struct entry *entry) {
  uint8_t head[RECORD_HEAD];
  if (!take_whole(head, sizeof head)) return false;
  entry->type = head[0];
  entry->mode = get_u32(head + 1);
  entry->uid = get_u32(head + 5);
  entry->gid = get_u32(head + 9);
  entry->modified = (int64_t)get_u64(head + 13);
  entry->size = get_u64(head + 21);
  take_path(entry->path, get_u32(head + 29));
  take_path(entry->target, get_u32(head + 33));
  bool is_file = entry->type == RECORD_FILE;
  if (entry->type > RECORD_HARD_LINK || entry->mode > 07777 || entry->path[0] != '/' || (!is_file && entry->size))
    peer_fail(STAGE_PROTOCOL, EPROTO);
  if (entry->uid == UINT32_MAX) entry->uid = owner;
  if (entry->gid == UINT32_MAX) entry->gid = group;
  return true;
}

/*
 * Removes the file or link already at an entry's path. If the creation failed for a reason other than EEXIST, sends FAILED and
 * exits.
 */
static void make_room(const char *path) {
  struct stat there;
  if (errno != EEXIST) peer_fail(STAGE_FILE, errno);
  if (lstat(path, &there) < 0) peer_fail(STAGE_FILE, errno);
  if (S_ISDIR(there.st_mode)) peer_fail(STAGE_FILE, EISDIR);
  if (unlink(path) < 0) peer_fail(STAGE_FILE, errno);
}

static void receive_file(int fd, uint64_t left) {
  static uint8_t piece[PIECE];
  while (left > 0) {
    size_t got = take_some(piece, left < PIECE ? left : PIECE);
    if (got == 0) peer_fail(STAGE_PROTOCOL, EPROTO);
    left -= got;
    for (uint8_t *at = piece; got > 0;) {
      ssize_t written = write(fd, at, got);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) peer_fail(STAGE_FILE, errno);
      at += written;
      got -= (size_t)written;
    }
  }
}

static void make_file(const struct entry *entry) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int fd = open(entry->path, flags, 0600);
  if (fd < 0) {
    make_room(entry->path);
    fd = open(entry->path, flags, 0600);
  }
  if (fd < 0) peer_fail(STAGE_FILE, errno);
  receive_file(fd, entry->size);
  struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = entry->modified}};
  /* Set the mode after the owner, because changing the owner clears the set-uid bits. */
  if (fchown(fd, entry->uid, entry->gid) < 0 || fchmod(fd, entry->mode) < 0 || futimens(fd, times) < 0 || close(fd) < 0)
    peer_fail(STAGE_FILE, errno);
}

static void make_directory(const struct entry *entry) {
  struct stat there;
  if (mkdir(entry->path, 0700) < 0) {
    if (errno != EEXIST || stat(entry->path, &there) < 0) peer_fail(STAGE_FILE, errno);
    if (!S_ISDIR(there.st_mode)) peer_fail(STAGE_FILE, ENOTDIR);
    return;
  }
  if (chown(entry->path, entry->uid, entry->gid) < 0 || chmod(entry->path, entry->mode) < 0)
    peer_fail(STAGE_FILE, errno);
}

static void make_link(const struct entry *entry) {
  if (symlink(entry->target, entry->path) < 0) {
    make_room(entry->path);
    if (symlink(entry->target, entry->path) < 0) peer_fail(STAGE_FILE, errno);
  }
  if (lchown(entry->path, entry->uid, entry->gid) < 0) peer_fail(STAGE_FILE, errno);
}

static void make_hard_link(const struct entry *entry) {
  if (link(entry->target, entry->path) == 0) return;
  make_room(entry->path);
  if (link(entry->target, entry->path) < 0) peer_fail(STAGE_FILE, errno);
}

static uint32_t id_in(const char *file, const char *name) {
  uint32_t id = 0;
  if (*name && !account_id(file, name, &id)) peer_fail(STAGE_USER, EINVAL);
  return id;
}

static void serve_unpack(struct fields *request) {
  const char *owner_name = take_string(request), *group_name = take_string(request);
  check_complete(request);
  owner = id_in("/etc/passwd", owner_name);
  group = *group_name ? id_in("/etc/group", group_name) : owner;
  peer_send(KIND_OK, NULL, 0);
  static struct entry entry;
  while (take_entry(&entry)) {
    if (make_parents(entry.path) < 0) peer_fail(STAGE_FILE, errno);
    if (entry.type == RECORD_FILE) make_file(&entry);
    else if (entry.type == RECORD_DIRECTORY) make_directory(&entry);
    else if (entry.type == RECORD_LINK) make_link(&entry);
    else make_hard_link(&entry);
  }
  peer_send(KIND_END, NULL, 0);
}

void file_unpack_start(struct connection *connection, struct fields *request) {
  file_server_start(connection, request, serve_unpack);
}
