/*
 * The shutdown: TERM to all processes, a grace period, KILL, then the agent exits. A command that ends in the grace period still
 * reports its exit code.
 */
#ifndef ALCOVE_SHUTDOWN_H
#define ALCOVE_SHUTDOWN_H

#include <stdbool.h>
#include <stdint.h>

void shutdown_begin(uint32_t grace_milliseconds);
bool shutdown_has_begun(void);
/* If a shutdown has begun, makes the agent exit soon. Called by the reaper when the agent has no child left. */
void shutdown_nobody_left(void);

#endif
