/*
 * Reads /etc/passwd and /etc/group of the sandbox. Does not call getpwnam or getgrnam of libc, because they could load the
 * sandbox's libraries or ask its daemons. Reads at most 4 MiB, because the sandbox decides how long these files are. Call these
 * functions only in forked processes: the sandbox's disk may be slow.
 */
#ifndef ALCOVE_ACCOUNTS_H
#define ALCOVE_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct accounts {
  char *next;     /* start of the next line */
  size_t left;    /* bytes from `next` to the end */
  char *field[7]; /* fields of the current line; missing ones are empty */
  char *longer;   /* buffer for a file of unusual length; otherwise NULL */
};

bool accounts_open(struct accounts *, const char *path);
bool accounts_next(struct accounts *);
void accounts_close(struct accounts *);

/* Parses a decimal id. Returns false for any other text. */
bool parse_id(const char *text, uint32_t *id);
/* Finds the id of a name in the file `path`, or parses a decimal id. Returns false if the file does not have the name. */
bool account_id(const char *path, const char *name_or_id, uint32_t *id);
/* Returns the name of an id, or "" if the id has no name. Names are cached. Never returns NULL. */
const char *account_name(const char *path, uint32_t id);

#endif
