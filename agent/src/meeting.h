/*
 * Named pipes on which a shell of the sandbox meets the agent: the one way to give descriptors to a process that runs
 * already. Whoever knows a name may open it; it exists only while the command that it is for runs.
 */
#ifndef ALCOVE_MEETING_H
#define ALCOVE_MEETING_H

#include <stdbool.h>
#include <stdint.h>

#define MEETING_PATH 64

/* Which way the sandbox's side of it goes. */
enum meeting_use { SANDBOX_READS, SANDBOX_WRITES };

/*
 * Makes a new one and opens both of its ends, not blocking, so that neither the shell's opening waits nor a reader sees
 * the end before the writing end here is closed. False: errno.
 */
bool meeting_open(char path[MEETING_PATH], enum meeting_use, int *reading, int *writing);
/* Takes the name away; who has it open keeps it. */
void meeting_close(const char *path);

#endif
