/*
 * Output that goes two ways at once, into a ring and to a peer, without being copied for the peer: the kernel's pages of
 * a pipe are put into the peer's socket as they are. The pipes in between are the agent's own, so that nobody else can
 * take anything out of them meanwhile.
 */
#ifndef ALCOVE_PAGES_H
#define ALCOVE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* False: this kernel or its limits do not allow it. */
bool pages_ready(void);
/* Takes at most LONG_CHUNK bytes out of a pipe, and answers as read does. Then they must be read, here, and all of them. */
ssize_t pages_take(int pipe, size_t at_most);
int pages_taken(void);
/* Before that: doubles them all, behind a frame's header. Then they must be sent, from here, and all of them. */
bool pages_double(const uint8_t *header, size_t size);
int pages_doubled(void);
/* Something that was to be empty is not, or nothing more will be taken for a while. */
void pages_drop(void);

#endif
