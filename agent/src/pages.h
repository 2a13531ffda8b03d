/*
 * Sends output to a peer and also stores it in a ring (ring.h). Large output is not copied for the peer: the kernel moves the pages
 * of a pipe into the peer's socket. On the way the pages are only in pipes of the agent, so no other process can take data out of
 * them.
 */
#ifndef ALCOVE_PAGES_H
#define ALCOVE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Opens the two pipes of the agent through which output passes on its way to a peer (`pages_taken` and `pages_doubled`), unless
 * they are open. Returns false if this kernel or its limits do not allow pipes of the needed size.
 */
bool pages_ready(void);
/*
 * Moves at most LONG_CHUNK bytes from `pipe` to the agent's pipe `pages_taken`. Returns the same values as read(2). The caller
 * must then read all moved bytes from `pages_taken`.
 */
ssize_t pages_take(int pipe, size_t at_most);
int pages_taken(void);
/*
 * Writes a frame for the peer into the agent's other pipe, `pages_doubled`: the header, then a copy of the `size` bytes in
 * `pages_taken`. The bytes also stay in `pages_taken`, so the caller can read them into the ring. Call this before reading from
 * `pages_taken`. The caller must then send everything in `pages_doubled` to the peer.
 */
bool pages_double(const uint8_t *header, size_t size);
int pages_doubled(void);
/*
 * Closes the agent's two pipes and drops all data in them. Call this if an error has left data in a pipe, or if no output is
 * expected for a while.
 */
void pages_drop(void);

#endif
