/* FILE_MKDIR, FILE_MOVE, FILE_REMOVE, FILE_PERMISSIONS: change names and permissions of files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "accounts.h"
#include "file_server.h"
#include "make_directories.h"
#include "operations.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif
#define DEPTH_MAX 1000
#define PASSES_MAX 3

/* ---- making directories ---- */

static bool is_directory(const char *path) {
  struct stat stat;
  return fstatat(AT_FDCWD, path, &stat, 0) == 0 && S_ISDIR(stat.st_mode);
}

/* Returns 0, EEXIST if the directory exists, or ENOTDIR if something else has the name. */
static int make_directory(const char *path) {
  if (mkdir(path, 0755) == 0) return 0;
  int reason = errno;
  if (is_directory(path)) return EEXIST;
  return reason == EEXIST ? ENOTDIR : reason;
}

/* Finds the next slash between two parts of the path. For example, in `/a/b/` that is only the slash before `b`. */
static char *next_slash(const char *path, char *from) {
  for (char *slash = from; (slash = strchr(slash, '/')); slash++)
    if (slash != path && slash[-1] != '/' && slash[1 + strspn(slash + 1, "/")] != 0) return slash;
  return NULL;
}

/* Returns whether the parent directory exists. If it exists, as is usual, the directories above it need no check. */
static bool has_parent(char *path) {
  char *last = NULL;
  for (char *slash = path; (slash = next_slash(path, slash)); slash++) last = slash;
  if (!last) return true;
  *last = 0;
  bool there = is_directory(path);
  *last = '/';
  return there;
}

int make_parents(char *path) {
  int made = 0;
  if (has_parent(path)) return made;
  for (char *slash = path; (slash = next_slash(path, slash)); slash++) {
    *slash = 0;
    int reason = make_directory(path);
    *slash = '/';
    made += !reason;
    if (!reason || reason == EEXIST) continue;
    errno = reason;
    return -1;
  }
  return made;
}

static void serve_mkdir(struct fields *request) {
  char *path = take_string(request);
  uint32_t mode = take_u32(request);
  check_complete(request);
  if (mode != KEEP_MODE && mode > 07777) peer_fail(STAGE_PROTOCOL, EPROTO);
  if (make_parents(path) < 0) peer_fail(STAGE_FILE, errno);
  int reason = make_directory(path);
  uint8_t created = reason == 0;
  if (!created && reason != EEXIST) peer_fail(STAGE_FILE, reason);
  if (created && mode != KEEP_MODE && chmod(path, mode) < 0) peer_fail(STAGE_FILE, errno);
  peer_send(KIND_OK, &created, 1);
}

/* ---- moving files ---- */

static void serve_move(struct fields *request) {
  const char *from = take_string(request), *to = take_string(request);
  uint8_t overwrite = take_u8(request);
  check_complete(request);
  struct stat there;
  long moved = overwrite ? rename(from, to) : syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
  if (moved < 0 && !overwrite && (errno == EINVAL || errno == ENOSYS)) {
    /*
     * This file system does not support RENAME_NOREPLACE, so check first whether the target exists. The check and the
     * rename are not atomic.
     */
    if (fstatat(AT_FDCWD, to, &there, AT_SYMLINK_NOFOLLOW) == 0) peer_fail(STAGE_FILE, EEXIST);
    moved = rename(from, to);
  }
  if (moved < 0) peer_fail(STAGE_FILE, errno);
  peer_send(KIND_OK, NULL, 0);
}

/* ---- removing files and directories ---- */

static int first_error;

static void note_error(void) {
  if (!first_error && errno != ENOENT) first_error = errno;
}

static void remove_tree(int at, const char *name, int depth);

/* Reads a directory once and removes each entry. If an entry cannot be removed, continues, and records the first such error. */
static void remove_contents(int fd, int depth) {
  DIR *directory = fdopendir(fd);
  if (!directory) {
    note_error();
    close(fd);
    return;
  }
  for (struct dirent *entry; (entry = readdir(directory));) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (unlinkat(dirfd(directory), entry->d_name, 0) == 0) continue;
    if (errno == EISDIR || errno == EPERM) remove_tree(dirfd(directory), entry->d_name, depth + 1);
    else note_error();
  }
  closedir(directory);
}

/*
 * Removes a directory with its contents. If the name belongs to a symbolic link, the link is not followed, and the open
 * fails.
 */
static void remove_tree(int at, const char *name, int depth) {
  for (int pass = 0; pass < PASSES_MAX; pass++) {
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (depth > DEPTH_MAX) errno = ELOOP;
    if (fd >= 0 && depth <= DEPTH_MAX) remove_contents(fd, depth);
    else {
      if (fd >= 0) close(fd);
      note_error();
    }
    if (unlinkat(at, name, AT_REMOVEDIR) == 0) return;
    if (errno != ENOTEMPTY || first_error) break; /* try again only if another process has added a file */
  }
  note_error();
}

static void serve_remove(struct fields *request) {
  char *path = take_string(request);
  uint8_t recursive = take_u8(request);
  check_complete(request);
  for (size_t size = strlen(path); size > 1 && path[size - 1] == '/'; size--) path[size - 1] = 0;
  struct stat stat, root;
  if (fstatat(AT_FDCWD, path, &stat, AT_SYMLINK_NOFOLLOW) < 0) peer_fail(STAGE_FILE, errno);
  if (fstatat(AT_FDCWD, "/", &root, 0) == 0 && stat.st_dev == root.st_dev && stat.st_ino == root.st_ino)
    peer_fail(STAGE_FILE, EBUSY);
  if (!S_ISDIR(stat.st_mode)) {
    if (unlink(path) < 0) peer_fail(STAGE_FILE, errno);
  } else if (!recursive) {
    peer_fail(STAGE_FILE, EISDIR);
  } else {
    remove_tree(AT_FDCWD, path, 0);
    if (first_error) peer_fail(STAGE_FILE, first_error);
  }
  peer_send(KIND_OK, NULL, 0);
}

/* ---- setting permissions ---- */

static uint32_t find_id(const char *file, const char *name) {
  uint32_t id = UINT32_MAX; /* with the id UINT32_MAX, chown changes nothing */
  if (*name && !account_id(file, name, &id)) peer_fail(STAGE_FILE, EINVAL);
  return id;
}

static void serve_permissions(struct fields *request) {
  const char *path = take_string(request);
  uint32_t mode = take_u32(request);
  const char *owner = take_string(request), *group = take_string(request);
  check_complete(request);
  if (mode != KEEP_MODE && mode > 07777) peer_fail(STAGE_PROTOCOL, EPROTO);
  uid_t uid = find_id("/etc/passwd", owner);
  gid_t gid = find_id("/etc/group", group);
  /* Set the mode last, because changing the owner clears the set-uid bits. */
  if ((*owner || *group) && chown(path, uid, gid) < 0) peer_fail(STAGE_FILE, errno);
  if (mode != KEEP_MODE && chmod(path, mode) < 0) peer_fail(STAGE_FILE, errno);
  if (!*owner && !*group && mode == KEEP_MODE && access(path, F_OK) < 0) peer_fail(STAGE_FILE, errno);
  peer_send(KIND_OK, NULL, 0);
}

void file_mkdir_start(struct connection *connection, struct fields *request) {
  file_server_start(connection, request, serve_mkdir);
}

void file_move_start(struct connection *connection, struct fields *request) {
  file_server_start(connection, request, serve_move);
}

void file_remove_start(struct connection *connection, struct fields *request) {
  file_server_start(connection, request, serve_remove);
}

void file_permissions_start(struct connection *connection, struct fields *request) {
  file_server_start(connection, request, serve_permissions);
}
