/*
 * The two files are read by hand, not through libc: its lookup may ask daemons and load libraries of the sandbox.
 */
#include "user.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGEST_ID 4294967294ul

static bool parse_id(const char *text, unsigned long *id) {
  if (!text || *text < '0' || *text > '9' || strlen(text) > 10) return false;
  char *end;
  *id = strtoul(text, &end, 10);
  return *end == 0 && *id <= LARGEST_ID;
}

/* Splits "a:b:c" in place; missing fields are empty. */
static void split(char *line, char *fields[], size_t count) {
  line[strcspn(line, "\r\n")] = 0;
  for (size_t i = 0; i < count; i++) {
    fields[i] = line;
    line += strcspn(line, ":");
    if (*line) *line++ = 0;
  }
}

static bool find_entry(struct user *user, const char *wanted, bool by_uid) {
  unsigned long wanted_uid = 0;
  if (by_uid && !parse_id(wanted, &wanted_uid)) return false;
  FILE *file = fopen("/etc/passwd", "re");
  if (!file) return false;
  char *line = NULL, *field[7];
  size_t room = 0;
  bool found = false;
  while (!found && getline(&line, &room, file) > 0) {
    unsigned long uid, gid;
    split(line, field, 7);
    if (!*field[0] || !parse_id(field[2], &uid) || !parse_id(field[3], &gid)) continue;
    found = by_uid ? uid == wanted_uid : strcmp(field[0], wanted) == 0;
    if (!found) continue;
    user->name = strdup(field[0]);
    user->home = strdup(*field[5] ? field[5] : "/");
    user->shell = strdup(*field[6] ? field[6] : "/bin/sh");
    user->uid = (uid_t)uid;
    user->gid = (gid_t)gid;
  }
  free(line);
  fclose(file);
  return found;
}

static bool lists(char *members, const char *name) {
  for (char *rest = members, *member; (member = strsep(&rest, ","));)
    if (strcmp(member, name) == 0) return true;
  return false;
}

static void find_groups(struct user *user) {
  user->groups[user->group_count++] = user->gid;
  FILE *file = fopen("/etc/group", "re");
  if (!file) return;
  char *line = NULL, *field[4];
  size_t room = 0;
  while (user->group_count < GROUPS_MAX && getline(&line, &room, file) > 0) {
    unsigned long gid;
    split(line, field, 4);
    if (!parse_id(field[2], &gid) || (gid_t)gid == user->gid || !lists(field[3], user->name)) continue;
    user->groups[user->group_count++] = (gid_t)gid;
  }
  free(line);
  fclose(file);
}

bool user_find(struct user *user, const char *wanted) {
  *user = (struct user){0};
  unsigned long uid;
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
    user->uid = (uid_t)uid;
    user->gid = (gid_t)uid;
  }
  if (!user->name || !user->home || !user->shell) {
    errno = ENOMEM;
    return false;
  }
  find_groups(user);
  return true;
}

bool user_become(const struct user *user) {
  if (geteuid() != 0 && geteuid() == user->uid) return true; /* an agent without rights has none to give up */
  return setgroups(user->group_count, user->groups) == 0 && setresgid(user->gid, user->gid, user->gid) == 0 &&
         setresuid(user->uid, user->uid, user->uid) == 0;
}
