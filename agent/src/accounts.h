/*
 * /etc/passwd and /etc/group of the sandbox, read by hand and not through libc, whose lookup may ask daemons and load
 * libraries of the sandbox. Such a file may be as long as its sandbox likes, so 4 MiB of it are read and no more: it costs
 * neither memory nor time without end. Only in forked processes all the same, as its disk may be slow.
 */
#ifndef ALCOVE_ACCOUNTS_H
#define ALCOVE_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct accounts {
  char *next;     /* behind the current line */
  size_t left;    /* bytes from there on */
  char *field[7]; /* of the current line; missing ones are empty */
  char *longer;   /* memory of a file of unusual length; otherwise NULL */
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
