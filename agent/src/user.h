/*
 * Who a command runs as, by the sandbox's own /etc/passwd and /etc/group. Only ever called in a process that was forked
 * for one command: these files belong to the sandbox, and its disk may be slow.
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
 * By name or decimal uid, perhaps with ":" and the name or id of a group. A uid without an entry is a user all the same, with
 * group 0. False: errno says why.
 */
bool user_find(struct user *, const char *user_and_group);
/* Gives up every right that this user does not have. False: errno says why. */
bool user_become(const struct user *);

#endif
