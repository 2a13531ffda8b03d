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

/* False if this kernel or its limits do not allow it. */
bool pages_ready(void);
/* Takes at most LONG_CHUNK bytes out of a pipe; returns like read. The caller must then read all of them from `pages_taken`. */
ssize_t pages_take(int pipe, size_t at_most);
int pages_taken(void);
/* Before that read: duplicates the data behind a frame's header. The caller must then send all of it from `pages_doubled`. */
bool pages_double(const uint8_t *header, size_t size);
int pages_doubled(void);
/* Call this after an error left data in a pipe, or when nothing will be taken for a while. */
void pages_drop(void);

#endif
