/* A connection serves one operation: it reads the frames of the request, starts the operation, and writes the answer's frames. */
#ifndef ALCOVE_CONNECTION_H
#define ALCOVE_CONNECTION_H

#include "fields.h"
#include "loop.h"
#include "wire.h"

struct connection;

/* Callbacks of the operation on a connection. Each may be NULL. */
struct operation {
  /* Called for each frame after the request. Returns false if the operation does not allow this frame now; the connection is
   * then closed. */
  bool (*frame)(struct connection *, uint8_t kind, uint8_t *payload, uint32_t size);
  /* Called when everything written so far was sent and the output buffer has room for a chunk of CHUNK bytes. */
  void (*drained)(struct connection *);
  /* Called when the connection is closed, so that the operation frees its state. */
  void (*closed)(struct connection *);
};

struct connection {
  struct source socket;
  struct timer deadline;
  const struct operation *operation;
  void *state;
  uint8_t *in, *out, *body;
  size_t in_at, in_size, in_room, out_start, out_end, out_room, body_size;
  bool blocked; /* the socket accepted only a part, so `drained` must be called later */
  bool ending;  /* the rest of `out` is written, then the connection waits until the peer closes it */
  struct connection *next, *previous;
};

/* Starts accepting on this listening socket. */
void connections_start(int listening_fd);

/* Sends a short frame. All short frames that are not sent to the peer yet may have at most 1 KiB together. */
void connection_send(struct connection *, uint8_t kind, const void *payload, uint32_t size);
/* Prepares a short frame that is sent with the next frame or by `connection_flush`. Only one frame can wait at a time. */
void connection_hold(struct connection *, uint8_t kind, const void *payload, uint32_t size);
void connection_flush(struct connection *);
/* Sends a FAILED frame, and ends the connection after that frame. */
void connection_fail(struct connection *, enum stage, int error_number);
/* Ends the connection after all its frames were sent. */
void connection_end(struct connection *);
void connection_close(struct connection *);

/* Returns true if all frames written so far were sent. Only then may an operation write its next chunk of output. */
bool connection_is_drained(const struct connection *);
/*
 * Enlarges the output buffer, if there is memory, so that a chunk may have LONG_CHUNK bytes. Returns the largest size of a
 * chunk.
 */
size_t connection_widen(struct connection *);
/* Returns a buffer for the payload of the next chunk: CHUNK bytes, or as many as `connection_widen` returned. */
uint8_t *connection_chunk(struct connection *);
void connection_send_chunk(struct connection *, uint8_t kind, uint32_t size);
/*
 * Sends a frame whose header and payload are in a pipe. All earlier frames must have been sent, and the socket must have room.
 * Closes the connection and returns false if the pipe has less than `size` bytes.
 */
bool connection_send_pipe(struct connection *, int pipe, size_t size);

/*
 * Keeps the request in memory, for an operation that needs it after its start function has returned. The operation
 * frees it with `request_free`.
 */
uint8_t *connection_keep_body(struct connection *, size_t *size);
void request_free(uint8_t *body, size_t size);

/*
 * Frees the connection and returns its socket. All frames must have been sent, and the peer must have sent nothing after its
 * request.
 */
int connection_take_over(struct connection *);
/*
 * Call this when an operation closes a socket from `connection_take_over`: that socket no longer counts towards the limit of
 * connections.
 */
void connection_slot_free(void);

#endif
