/*
 * Named pipes connect the agent to a shell that already runs: such a shell cannot be given a descriptor. Anyone who knows the path
 * of a pipe may open it, so the path exists only while the command that uses the pipe runs.
 */
#ifndef ALCOVE_MEETING_H
#define ALCOVE_MEETING_H

#include <stdbool.h>
#include <stdint.h>

#define MEETING_PATH 64

/* Whether the sandbox's shell reads from the named pipe or writes to it. */
enum meeting_use { SANDBOX_READS, SANDBOX_WRITES };

/*
 * Makes a named pipe and opens both ends without blocking. So the shell need not wait for the agent, and a reader sees no end of
 * file before the agent closes the writing end. Returns false with errno.
 */
bool meeting_open(char path[MEETING_PATH], enum meeting_use, int *reading, int *writing);
/* Removes the name of a pipe. Open descriptors stay valid. */
void meeting_close(const char *path);

#endif
