/*
 * Named pipes connect the agent and a shell of the sandbox. A shell that already runs can open new descriptors only by a
 * name. Anyone who knows the name of a pipe may open it, so the name exists only while its command runs.
 */
#ifndef ALCOVE_MEETING_H
#define ALCOVE_MEETING_H

#include <stdbool.h>
#include <stdint.h>

#define MEETING_PATH 64

/* Direction of the pipe, from the sandbox's side. */
enum meeting_use { SANDBOX_READS, SANDBOX_WRITES };

/*
 * Makes a named pipe and opens both ends without blocking. So the shell's open does not wait, and a reader sees no end
 * of file before the agent closes its writing end. Returns false with errno.
 */
bool meeting_open(char path[MEETING_PATH], enum meeting_use, int *reading, int *writing);
/* Removes the name of a pipe. Open descriptors stay valid. */
void meeting_close(const char *path);

#endif
