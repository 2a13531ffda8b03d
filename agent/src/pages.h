/*
 * Sends output both into a ring and to a peer without copying it for the peer: the kernel's pages of a pipe are moved into the
 * peer's socket. The pipes in between belong to the agent, so that no other process can take data out of them.
 */
#ifndef ALCOVE_PAGES_H
#define ALCOVE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens the agent's two pipes. Returns false if this kernel or its limits do not allow pipes of the needed size. */
bool pages_ready(void);
/*
 * Moves at most LONG_CHUNK bytes out of a pipe. Returns the same values as read(2). The caller must then read all of them from
 * `pages_taken`.
 */
ssize_t pages_take(int pipe, size_t at_most);
int pages_taken(void);
/*
 * Call this before reading from `pages_taken`: it duplicates the moved data behind a frame's header. The caller must then send
 * all of it from `pages_doubled`.
 */
bool pages_double(const uint8_t *header, size_t size);
int pages_doubled(void);
/* Call this after an error left data in a pipe, or if no data will be moved for a while. */
void pages_drop(void);

#endif
