/*
 * Finds the user, program and directory of a sudo request, then replaces this process by the program. The program and directory are
 * looked up with the rights of the target user.
 */
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "accounts.h"
#include "sudo.h"
#include "sudo_request.h"

#define REFUSED 1 /* exit code of sudo if it refuses the command */

_Noreturn static void give_up(void) { _exit(REFUSED); }

_Noreturn static void no_memory(void) {
  dprintf(2, "sudo: unable to allocate memory\n");
  give_up();
}

/* Finds the target user. `#1000` is an id; a plain `1000` is refused, because it is not a user name. */
static bool find_target(struct user *target, const char *wanted) {
  uint32_t uid;
  if (strchr(wanted, ':')) return false;
  if (*wanted != '#') return *wanted && !parse_id(wanted, &uid) && user_find(target, wanted);
  return parse_id(wanted + 1, &uid) && user_find(target, wanted + 1) && target->uid == uid;
}

static bool find_group(const char *wanted, gid_t *gid) {
  uint32_t number;
  if (*wanted == '#') {
    if (!parse_id(wanted + 1, &number)) return false;
  } else if (parse_id(wanted, &number) || !account_id("/etc/group", wanted, &number)) return false;
  *gid = number;
  return true;
}

static void choose_target(const struct sudo_request *request, const struct user *caller, struct user *target) {
  if (!*request->user && *request->group) *target = *caller;
  else if (!find_target(target, *request->user ? request->user : "root")) {
    dprintf(2, "sudo: unknown user %s\n", request->user);
    give_up();
  }
  if (!*request->group) return;
  if (!find_group(request->group, &target->gid)) {
    dprintf(2, "sudo: unknown group %s\n", request->group);
    give_up();
  }
  target->groups[0] = target->gid;
}

/* ---- finding the program ---- */

static bool is_program(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 && S_ISREG(found.st_mode) && access(path, X_OK) == 0;
}

static char *find_program(const char *name, const char *path) {
  if (strchr(name, '/')) return is_program(name) ? strdup(name) : NULL;
  for (const char *at = path; *name && at;) {
    const char *end = strchrnul(at, ':');
    char *program = NULL;
    if (end > at && *at == '/' && asprintf(&program, "%.*s/%s", (int)(end - at), at, name) >= 0) {
      if (is_program(program)) return program;
      free(program);
    }
    at = *end ? end + 1 : NULL;
  }
  return NULL;
}

/* Quotes the words so that a shell that parses the result gets exactly these words. */
static char *quoted(char **words, uint32_t count) {
  size_t room = 1;
  for (uint32_t i = 0; i < count; i++) room += 2 * strlen(words[i]) + 1;
  char *text = malloc(room), *at = text;
  if (!text) no_memory();
  for (uint32_t i = 0; i < count; i++) {
    if (i) *at++ = ' ';
    for (const char *from = words[i]; *from; from++) {
      bool is_plain = isalnum((unsigned char)*from) || strchr("_-$", *from) || (unsigned char)*from >= 0x80;
      if (!is_plain) *at++ = '\\';
      *at++ = *from;
    }
  }
  *at = 0;
  return text;
}

static char *joined(const char *program, char **argv) {
  size_t room = strlen(program) + 1;
  for (char **word = argv; *word; word++) room += strlen(*word) + 1;
  char *text = malloc(room), *at = text;
  if (!text) no_memory();
  at = stpcpy(at, program);
  for (char **word = argv; *word; word++) at = stpcpy(stpcpy(at, " "), *word);
  return text;
}

struct command {
  char *program;
  char **argv;
};

static const char *shell_of(const struct sudo_request *request, const struct user *caller, const struct user *target) {
  if (request->flags & SUDO_LOGIN) return target->shell;
  const char *shell = sudo_variable(request->env, request->env_count, "SHELL");
  return shell && *shell ? shell : caller->shell;
}

static struct command shell_command(const struct sudo_request *request, const char *shell) {
  char **argv = calloc(4, sizeof *argv);
  if (!argv) no_memory();
  const char *slash = strrchr(shell, '/');
  argv[0] = strdup(slash ? slash + 1 : shell);
  if (request->flags & SUDO_LOGIN && asprintf(&argv[0], "-%s", slash ? slash + 1 : shell) < 0) no_memory();
  if (request->argc) {
    argv[1] = strdup("-c");
    argv[2] = quoted(request->argv, request->argc);
  }
  return (struct command){.program = strdup(shell), .argv = argv};
}

static struct command choose_command(const struct sudo_request *request, const struct user *caller, const struct user *target,
                                     const char *path) {
  if (request->flags & (SUDO_LOGIN | SUDO_SHELL)) return shell_command(request, shell_of(request, caller, target));
  if (!request->argc) give_up();
  char *program = find_program(request->argv[0], path);
  if (!program) {
    dprintf(2, "sudo: %s: command not found\n", request->argv[0]);
    give_up();
  }
  return (struct command){.program = program, .argv = request->argv};
}

/* ---- entering the working directory ---- */

static void enter(const struct sudo_request *request, const struct user *target) {
  if (*request->directory) {
    if (chdir(request->directory) == 0) return;
    dprintf(2, "sudo: unable to change directory to %s: %s\n", request->directory, strerror(errno));
    give_up();
  }
  if (request->flags & SUDO_LOGIN && chdir(target->home) < 0)
    dprintf(2, "sudo: unable to change directory to %s: %s\n", target->home, strerror(errno));
}

/* Runs the program. A script without a `#!` line is run by sh, as execvp(3) does. */
static void run(const struct command *command, char **environment) {
  execve(command->program, command->argv, environment);
  if (errno != ENOEXEC) return;
  size_t count = 0;
  while (command->argv[count]) count++;
  char **argv = calloc(count + 3, sizeof *argv);
  if (!argv) no_memory();
  argv[0] = (char[]){"sh"};
  argv[1] = command->program;
  for (size_t i = 1; i < count; i++) argv[i + 1] = command->argv[i];
  execve("/bin/sh", argv, environment);
}

void sudo_become(const struct sudo_request *request, const struct user *caller, const char *path) {
  struct user target;
  choose_target(request, caller, &target);
  if (request->terminal >= 0) (void)!fchown(request->terminal, target.uid, (gid_t)-1);
  if (!user_become(&target)) {
    dprintf(2, "sudo: unable to become %s: %s\n", target.name, strerror(errno));
    give_up();
  }
  umask(request->mask | 022);
  enter(request, &target);
  struct command command = choose_command(request, caller, &target, path);
  if (!command.program) no_memory();
  char **environment = sudo_environment(request, caller, &target, path, joined(command.program, command.argv + 1));
  if (!environment) no_memory();
  run(&command, environment);
  dprintf(2, "sudo: unable to execute %s: %s\n", command.program, strerror(errno));
  give_up();
}
