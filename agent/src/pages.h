/*
 * Sends output to a peer and stores it in a ring (ring.h). Large output is not copied for the peer: the kernel moves pages from a
 * pipe into the socket. Only the agent has these pipes, so no other process can take data out of them.
 */
#ifndef ALCOVE_PAGES_H
#define ALCOVE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Opens the agent's two pipes `taken` (output for the ring) and `doubled` (a frame for the peer), unless they are open. Returns
 * false if the kernel does not make them large enough.
 */
bool pages_ready(void);
/*
 * Moves at most LONG_CHUNK bytes from `pipe` into the pipe `taken`. Returns what read(2) would. The caller must then empty `taken`.
 */
ssize_t pages_take(int pipe, size_t at_most);
/* Returns the end of the pipe `taken` from which to read. */
int pages_taken(void);
/*
 * Writes a frame for the peer into the pipe `doubled`: the header, then a copy of the `size` bytes in the pipe `taken`. The bytes
 * also stay in `taken`, for the ring. Call this before reading from `taken`. Then send everything in `doubled`.
 */
bool pages_double(const uint8_t *header, size_t size);
/* Returns the end of the pipe `doubled` from which to read. */
int pages_doubled(void);
/*
 * Closes the pipes `taken` (output for the ring) and `doubled` (a frame for the peer), and drops their data. Call this after an
 * error, or if no output is expected soon.
 */
void pages_drop(void);

#endif
