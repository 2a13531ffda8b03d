/*
 * Runs each file operation in its own process, with the rights of a user of the sandbox. This process owns the connection and may
 * block. The agent itself never opens a path that a caller names.
 */
#ifndef ALCOVE_FILE_SERVER_H
#define ALCOVE_FILE_SERVER_H

#include "connection.h"

/* Descriptor of the connection in the forked process. */
#define PEER 3
#define LOCKS 4

/* Forks a process that becomes the user (first field of the request), changes to the user's home, and calls `serve`. */
void file_server_start(struct connection *, struct fields *, void (*serve)(struct fields *));

/* ---- functions for the callback `serve` of file_server_start; they end the process if the peer has disconnected ---- */

/* Buffers a frame. Buffered frames are sent when the buffer is full, before a read, and before the process ends. */
void peer_send(uint8_t kind, const void *payload, uint32_t size);
void peer_flush(void);
/* Writes raw bytes after the buffered frames. */
void peer_write(const void *bytes, size_t size);
/* Sends FAILED and ends the process. */
_Noreturn void peer_fail(enum stage, int error_number);
/* Ends the process after the peer has received all frames. */
_Noreturn void peer_done(void);
/* Waits for the next bytes of the peer and reads at least one of them. */
size_t peer_read(void *into, size_t size);
/* Sets a function that runs before the process ends, except after SIGKILL. NULL: no function. */
void peer_at_end(void (*clear)(void));

/*
 * Waits until no other process for file operations holds the lock with this number, then takes the lock and keeps it until this
 * process ends. Returns false with errno if locking is impossible.
 */
bool peer_lock(uint64_t number);

/* Ends the process with FAILED unless the request was complete and valid. */
void check_complete(const struct fields *);

#endif
