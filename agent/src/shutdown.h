/*
 * The orderly shutdown: TERM to all processes, a grace period, KILL, then the agent exits. Commands that end during the grace
 * period are reported as usual.
 */
#ifndef ALCOVE_SHUTDOWN_H
#define ALCOVE_SHUTDOWN_H

#include <stdbool.h>
#include <stdint.h>

void shutdown_begin(uint32_t grace_milliseconds);
bool shutdown_has_begun(void);
/* Called by the reaper when the agent has no child left. */
void shutdown_nobody_left(void);

#endif
