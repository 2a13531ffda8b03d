/*
 * Finds the user of a command in the sandbox's /etc/passwd and /etc/group. Called only in a process that was forked for one
 * command, because the sandbox's disk may be slow.
 */
#ifndef ALCOVE_USER_H
#define ALCOVE_USER_H

#include <stdbool.h>
#include <sys/types.h>

#define GROUPS_MAX 256

struct user {
  char *name, *home, *shell;
  uid_t uid;
  gid_t gid;
  gid_t groups[GROUPS_MAX];
  size_t group_count;
};

/*
 * Finds a user by name or decimal uid, perhaps with ":" and a group. A uid without an entry is valid and has group 0. Returns false
 * with errno.
 */
bool user_find(struct user *, const char *user_and_group);
/* Becomes the user: sets groups, gid and uid, and gives up all other rights. Returns false with errno on failure. */
bool user_become(const struct user *);

#endif
