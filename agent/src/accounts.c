/* Parses /etc/passwd and /etc/group. In both files, the first field of a line is the name, and the third is the id. */
#include "accounts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REMEMBERED 32
#define BYTES_AT_FIRST (16u << 10)
#define BYTES_MAX (4u << 20) /* enough for tens of thousands of lines */

bool parse_id(const char *text, uint32_t *id) {
  if (*text < '0' || *text > '9' || strlen(text) > 10) return false;
  char *end;
  unsigned long long value = strtoull(text, &end, 10);
  if (*end || value >= UINT32_MAX) return false; /* the kernel reads -1 as "no user" */
  *id = (uint32_t)value;
  return true;
}

/* A static buffer for files of at most 16 KiB, so that they need no allocation. Only one file is open at a time. */
static char usual[BYTES_AT_FIRST + 1]; /* one byte more, for a NUL after the last line */

static bool read_text(struct accounts *accounts, int fd) {
  size_t room = BYTES_AT_FIRST, size = 0;
  ssize_t got;
  char *text = usual;
  for (;;) {
    while (size < room && (got = read(fd, text + size, room - size)) > 0) size += (size_t)got;
    if (size < room || room == BYTES_MAX) break;
    room *= 2;
    char *more = realloc(accounts->longer, room + 1);
    if (!more) return false;
    if (!accounts->longer) memcpy(more, usual, size);
    accounts->longer = text = more;
  }
  if (size == BYTES_MAX) { /* the file is cut at BYTES_MAX: its last line may contain only half of an id */
    const char *last = memrchr(text, '\n', size);
    size = last ? (size_t)(last + 1 - text) : 0;
  }
  accounts->next = text;
  accounts->left = size;
  return true;
}

/* Opens the file `path`. A file that is not regular counts as missing, for example a fifo that never answers. */
bool accounts_open(struct accounts *accounts, const char *path) {
  *accounts = (struct accounts){0};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat stat;
  bool is_read = fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && read_text(accounts, fd);
  close(fd);
  if (!is_read) accounts_close(accounts);
  return is_read;
}

bool accounts_next(struct accounts *accounts) {
  if (accounts->left == 0) return false;
  char *at = accounts->next, *end = memchr(at, '\n', accounts->left);
  size_t size = end ? (size_t)(end - at) : accounts->left;
  accounts->left -= end ? size + 1 : size;
  accounts->next = at + size + 1;
  at[size] = 0;
  at[strcspn(at, "\r")] = 0;
  for (size_t i = 0; i < sizeof accounts->field / sizeof *accounts->field; i++) {
    accounts->field[i] = at;
    at += strcspn(at, ":");
    if (*at) *at++ = 0;
  }
  return true;
}

void accounts_close(struct accounts *accounts) { free(accounts->longer); }

bool account_id(const char *path, const char *name_or_id, uint32_t *id) {
  struct accounts file;
  bool found = false;
  if (accounts_open(&file, path)) {
    while (!found && accounts_next(&file)) found = strcmp(file.field[0], name_or_id) == 0 && parse_id(file.field[2], id);
    accounts_close(&file);
  }
  return found || parse_id(name_or_id, id);
}

const char *account_name(const char *path, uint32_t id) {
  static struct {
    const char *path;
    uint32_t id;
    char *name;
  } seen[REMEMBERED];
  static size_t next;
  for (size_t i = 0; i < REMEMBERED; i++)
    if (seen[i].name && seen[i].id == id && strcmp(seen[i].path, path) == 0) return seen[i].name;
  char *name = NULL;
  struct accounts file;
  if (accounts_open(&file, path)) {
    uint32_t other;
    while (!name && accounts_next(&file))
      if (parse_id(file.field[2], &other) && other == id) name = strdup(file.field[0]);
    accounts_close(&file);
  }
  size_t place = next++ % REMEMBERED;
  free(seen[place].name);
  seen[place].path = path;
  seen[place].id = id;
  seen[place].name = name ? name : strdup("");
  return seen[place].name ? seen[place].name : "";
}
