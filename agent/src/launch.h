/*
 * Starting a program as a user of the sandbox, with nothing of the agent's left in it.
 */
#ifndef ALCOVE_LAUNCH_H
#define ALCOVE_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fields.h"

/* What to start. The strings lie in the request, which must outlive this. */
struct program {
  char *user, *cwd; /* cwd: absolute, or relative to the user's home; empty: home */
  char **argv, **env;
  uint32_t argc, envc;
};

/* Takes user, cwd, argv and env. False when the request is bad. `program_free` is right after either. */
bool program_take(struct program *, struct fields *);
void program_free(struct program *);

/*
 * Pipes for a program. ours: the ends for its input, output and error output, not blocking; theirs: what becomes its
 * 0, 1 and 2. Merged output has no third of ours. All must be -1 before; also on failure, what was opened is in there.
 */
bool streams_open(bool merge_output, int ours[3], int theirs[3]);
void streams_close(int fds[3]);

/*
 * Forks. `streams` become its 0, 1 and 2; a terminal on them becomes its controlling terminal. `*report` is a non-blocking descriptor: end of file means that the program
 * runs, five bytes (u8 stage, u32 errno) that it does not. -1 with errno when the kernel refuses.
 */
pid_t launch(const struct program *, const int streams[3], bool is_terminal, int *report);

#endif
