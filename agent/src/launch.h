/* Starts a program as a user of the sandbox. The program inherits no resource of the agent. */
#ifndef ALCOVE_LAUNCH_H
#define ALCOVE_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fields.h"

/* The program to start. The strings point into the request, which must stay in memory longer than this struct. */
struct program {
  char *user, *cwd; /* cwd: absolute, or relative to the user's home; empty: home */
  char **argv, **env;
  uint32_t argc, envc;
};

/* Reads user, cwd, argv and env. Returns false for an invalid request. Call `program_free` in both cases. */
bool program_take(struct program *, struct fields *);
void program_free(struct program *);

/*
 * Opens pipes for a program. `ours`: the agent's non-blocking ends for input, output and, without `merge_output`, error output.
 * `theirs`: the program's descriptors 0, 1 and 2. All elements must be -1 before the call. After a failure, the caller closes the
 * elements that are not -1.
 */
bool streams_open(bool merge_output, int ours[3], int theirs[3]);
void streams_close(int fds[3]);

/*
 * Starts the program in a new process. A terminal among `streams` becomes its controlling terminal. `*report` is non-blocking: end
 * of file if the program runs, or five bytes (u8 stage, u32 errno) if the start failed. Returns -1 with errno if the kernel
 * refuses.
 */
pid_t launch(const struct program *, const int streams[3], bool is_terminal, int *report);

#endif
