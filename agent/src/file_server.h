/*
 * A process for one file operation. It has the rights of one user of the sandbox and nothing else: the agent itself
 * never opens a path that somebody names, and whatever blocks, blocks only this process. It owns the connection and may
 * wait on it.
 */
#ifndef ALCOVE_FILE_SERVER_H
#define ALCOVE_FILE_SERVER_H

#include "connection.h"

/* The connection, in the forked process. */
#define PEER 3
#define LOCKS 4

/* Forks, becomes the user (the first field of the request), stands in the user's home, and serves. */
void file_server_start(struct connection *, struct fields *, void (*serve)(struct fields *));

/* ---- for those who serve; whatever finds the peer gone ends the process ---- */

/* Gathered, and sent when it is worth it, before anything is read, and at the end. */
void peer_send(uint8_t kind, const void *payload, uint32_t size);
void peer_flush(void);
/* Raw, behind what was gathered. */
void peer_write(const void *bytes, size_t size);
/* FAILED and the end of the process. */
_Noreturn void peer_fail(enum stage, int error_number);
/* The process ends, when the peer has heard everything. */
_Noreturn void peer_done(void);
/* A part of the next bytes, at least one. */
size_t peer_read(void *into, size_t size);
/* Called before the process ends in whichever way, but for KILL. NULL: nothing any more. */
void peer_at_end(void (*clear)(void));

/* Waits until no other server has locked this number, which is then its own until it ends. False with errno. */
bool peer_lock(uint64_t number);

/* Fails unless the request was complete. */
void check_complete(const struct fields *);

#endif
