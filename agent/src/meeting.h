/*
 * Named pipes connect the agent and a shell of the sandbox. The agent cannot pass a descriptor to a shell that already runs, but
 * the shell can open a path. Anyone who knows the path of a pipe may open it, so the path exists only while its command runs.
 */
#ifndef ALCOVE_MEETING_H
#define ALCOVE_MEETING_H

#include <stdbool.h>
#include <stdint.h>

#define MEETING_PATH 64

/*
 * The direction of a named pipe between the agent and a shell of the sandbox: whether the shell reads from the pipe or writes to
 * it.
 */
enum meeting_use { SANDBOX_READS, SANDBOX_WRITES };

/*
 * Makes a named pipe and opens both ends without blocking. So the shell does not wait when it opens its end, and a reader sees no
 * end of file before the agent closes the writing end. Returns false with errno.
 */
bool meeting_open(char path[MEETING_PATH], enum meeting_use, int *reading, int *writing);
/* Removes the name of a pipe. Open descriptors stay valid. */
void meeting_close(const char *path);

#endif
