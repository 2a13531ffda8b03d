/*
 * The orderly end: TERM to everybody, time to finish, KILL, and the agent exits. Commands that end in that time are
 * still told as usual.
 */
#ifndef ALCOVE_SHUTDOWN_H
#define ALCOVE_SHUTDOWN_H

#include <stdbool.h>
#include <stdint.h>

void shutdown_begin(uint32_t grace_milliseconds);
bool shutdown_has_begun(void);
/* The reaper found that no child is left. */
void shutdown_nobody_left(void);

#endif
