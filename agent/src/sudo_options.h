/*
 * Reads the command line of sudo.
 */
#ifndef ALCOVE_SUDO_OPTIONS_H
#define ALCOVE_SUDO_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sudo_options {
  uint8_t flags; /* bits of enum sudo_flags */
  const char *user, *group, *directory;
  char **keep, **variables, **argv; /* NULL at their end */
  bool background, lists, lists_other, validates, forgets;
};

/* Reads the command line. Ends the process if there is nothing to run: help, version, or an error. */
void sudo_options_read(int argc, char **argv, struct sudo_options *);
/* Prints the usage of sudo to standard error, and ends the process. */
_Noreturn void sudo_usage(void);

#endif
