/* The request of a sudo client, and the environment and program of the command that it asks for. */
#ifndef ALCOVE_SUDO_REQUEST_H
#define ALCOVE_SUDO_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "user.h"

struct sudo_request {
  uint8_t flags;
  uint16_t mask;                   /* umask of the caller */
  uint64_t ignored;                /* signals that the caller ignores; the command ignores them too */
  char *user, *group;              /* empty if the option is missing */
  char *directory;                 /* empty: the caller's directory */
  char **keep, **variables, **env; /* names to keep; NAME=value of the command line; the caller's environment */
  char **argv;
  uint32_t keep_count, variable_count, env_count, argc;
  int streams[3];
  int cwd, terminal; /* descriptors; -1: the client sent none */
};

/* Reads header, descriptors and request. Returns false if one of them is invalid or comes too late. */
bool sudo_receive(int peer, struct sudo_request *);

/*
 * Becomes the target user of the request, then executes the request's program, with the descriptors of this process. Errors go to
 * standard error.
 */
_Noreturn void sudo_become(const struct sudo_request *, const struct user *caller, const char *path);

/* Returns the new environment (sudoers(5), "Command environment"), with SUDO_COMMAND; NULL if out of memory. */
char **sudo_environment(const struct sudo_request *, const struct user *caller, const struct user *target, const char *path,
                        const char *command);
/* Returns the value of a variable in the list; NULL if it is not set. */
const char *sudo_variable(char **variables, uint32_t count, const char *name);

#endif
