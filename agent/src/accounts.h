/*
 * /etc/passwd and /etc/group of the sandbox, read by hand and not through libc, whose lookup may ask daemons and load
 * libraries of the sandbox. Only in forked processes: such a file may be as long as its sandbox likes.
 */
#ifndef ALCOVE_ACCOUNTS_H
#define ALCOVE_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct accounts {
  FILE *file;
  char *line;
  size_t room;
  char *field[7]; /* of the current line; missing ones are empty */
};

bool accounts_open(struct accounts *, const char *path);
bool accounts_next(struct accounts *);
void accounts_close(struct accounts *);

/* A decimal id, and nothing else. */
bool parse_id(const char *text, uint32_t *id);
/* The id that stands in the third field for a name, or for a decimal id itself. `path` names the file. */
bool account_id(const char *path, const char *name_or_id, uint32_t *id);
/* The name for an id, or "" where it has none. Remembered for the next time; never NULL. */
const char *account_name(const char *path, uint32_t id);

#endif
