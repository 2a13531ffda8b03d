/*
 * Finds a user and the user's groups, and becomes that user. The groups are set first, because the change of user loses the right
 * to set them.
 */
#include "user.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "accounts.h"

static bool find_entry(struct user *user, const char *wanted, bool by_uid) {
  uint32_t wanted_uid = 0, uid, gid;
  struct accounts file;
  if ((by_uid && !parse_id(wanted, &wanted_uid)) || !accounts_open(&file, "/etc/passwd")) return false;
  bool found = false;
  while (!found && accounts_next(&file)) {
    char **field = file.field;
    if (!*field[0] || !parse_id(field[2], &uid) || !parse_id(field[3], &gid)) continue;
    found = by_uid ? uid == wanted_uid : strcmp(field[0], wanted) == 0;
    if (!found) continue;
    user->name = strdup(field[0]);
    user->home = strdup(*field[5] ? field[5] : "/");
    user->shell = strdup(*field[6] ? field[6] : "/bin/sh");
    user->uid = uid;
    user->gid = gid;
  }
  accounts_close(&file);
  return found;
}

static bool lists(char *members, const char *name) {
  for (char *rest = members, *member; (member = strsep(&rest, ","));)
    if (strcmp(member, name) == 0) return true;
  return false;
}

static void find_groups(struct user *user) {
  user->groups[user->group_count++] = user->gid;
  struct accounts file;
  if (!accounts_open(&file, "/etc/group")) return;
  uint32_t gid;
  while (user->group_count < GROUPS_MAX && accounts_next(&file))
    if (parse_id(file.field[2], &gid) && gid != user->gid && lists(file.field[3], user->name))
      user->groups[user->group_count++] = gid;
  accounts_close(&file);
}

/* Finds a user given as "name:group". As in Docker, the process then has only that group. */
static bool find_with_group(struct user *user, const char *wanted, const char *colon) {
  char *name = strndup(wanted, (size_t)(colon - wanted));
  if (!name) return false;
  bool found = user_find(user, name);
  free(name);
  if (!found || !colon[1]) return found;
  uint32_t gid = 0;
  if (!account_id("/etc/group", colon + 1, &gid) && strcmp(colon + 1, "root") != 0) {
    errno = ENOENT;
    return false;
  }
  user->gid = gid;
  user->groups[0] = user->gid;
  user->group_count = 1;
  return true;
}

bool user_find(struct user *user, const char *wanted) {
  *user = (struct user){0};
  const char *colon = strchr(wanted, ':');
  if (colon) return find_with_group(user, wanted, colon);
  uint32_t uid;
  if (!find_entry(user, wanted, false) && !find_entry(user, wanted, true)) {
    bool is_root = strcmp(wanted, "root") == 0 || strcmp(wanted, "0") == 0;
    if (is_root) uid = 0;
    else if (!parse_id(wanted, &uid)) {
      errno = ENOENT;
      return false;
    }
    user->name = strdup(is_root ? "root" : wanted);
    user->home = strdup(is_root ? "/root" : "/");
    user->shell = strdup("/bin/sh");
    user->uid = uid;
    user->gid = 0; /* group 0, as in Docker: images let a user without an entry write what group 0 may write */
  }
  if (!user->name || !user->home || !user->shell) {
    errno = ENOMEM;
    return false;
  }
  find_groups(user);
  return true;
}

bool user_become(const struct user *user) {
  if (geteuid() != 0 && geteuid() == user->uid) return true; /* an agent without privileges is that user already */
  return setgroups(user->group_count, user->groups) == 0 && setresgid(user->gid, user->gid, user->gid) == 0 &&
         setresuid(user->uid, user->uid, user->uid) == 0;
}
