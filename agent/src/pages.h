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
 * Opens the pipes `pages_taken` and `pages_doubled`, unless they are open. Returns false if the kernel does not make them large
 * enough.
 */
bool pages_ready(void);
/*
 * Moves at most LONG_CHUNK bytes from `pipe` to `pages_taken`, and returns what read(2) would. The caller must then empty
 * `pages_taken`.
 */
ssize_t pages_take(int pipe, size_t at_most);
int pages_taken(void);
/*
 * Writes a frame into `pages_doubled`: the header, then a copy of the `size` bytes in `pages_taken`, which also stay there. Call
 * this before reading from `pages_taken`. Then send everything in `pages_doubled`.
 */
bool pages_double(const uint8_t *header, size_t size);
int pages_doubled(void);
/*
 * Closes the pipes `pages_taken` and `pages_doubled`, and drops their data. Call this after an error, or if no output is expected
 * soon.
 */
void pages_drop(void);

#endif
