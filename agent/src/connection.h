/*
 * One connection carries one operation. A connection reads frames, bounds them, gathers the request, starts the
 * operation that it names, and writes frames back through one buffer.
 */
#ifndef ALCOVE_CONNECTION_H
#define ALCOVE_CONNECTION_H

#include "fields.h"
#include "loop.h"
#include "wire.h"

struct connection;

/* What the operation that a connection carries does when something happens. Each may be NULL. */
struct operation {
  /* A further frame came. False: it makes no sense here, and the connection is ended. */
  bool (*frame)(struct connection *, uint8_t kind, uint8_t *payload, uint32_t size);
  /* Everything written so far has gone out; there is room for a whole chunk. */
  void (*drained)(struct connection *);
  /* The connection is gone; its state must be freed. */
  void (*closed)(struct connection *);
};

struct connection {
  struct source socket;
  struct timer deadline;
  const struct operation *operation;
  void *state;
  uint8_t *in, *out, *body;
  size_t in_at, in_size, in_room, out_start, out_end, out_room, body_size;
  bool blocked; /* the peer was full, so it is owed a `drained` */
  bool ending;  /* what is in `out` is written, then the connection waits for the peer to close it */
  struct connection *next, *previous;
};

/* Starts accepting on this listening socket. */
void connections_start(int listening_fd);

/* A short frame (at most 1 KiB in all between two drains). */
void connection_send(struct connection *, uint8_t kind, const void *payload, uint32_t size);
/* A short frame that waits for whatever is sent next, or for `connection_flush`; one at a time. */
void connection_hold(struct connection *, uint8_t kind, const void *payload, uint32_t size);
void connection_flush(struct connection *);
/* FAILED, and the connection ends when that is written. */
void connection_fail(struct connection *, enum stage, int error_number);
/* The connection ends when everything is written. */
void connection_end(struct connection *);
void connection_close(struct connection *);

/* True when a chunk may be written. */
bool connection_is_drained(const struct connection *);
/* From here on there is room for LONG_CHUNK bytes, as far as memory allows. Answers for how many. */
size_t connection_widen(struct connection *);
/* Where the payload of the next chunk goes (CHUNK bytes, or what was said above); then say how much it was. */
uint8_t *connection_chunk(struct connection *);
void connection_send_chunk(struct connection *, uint8_t kind, uint32_t size);
/*
 * Sends a frame that lies whole in a pipe, which is empty then. Only where all that was sent or held has gone out, and
 * there is room for the frame. False: there was less in the pipe, which ends the connection.
 */
bool connection_send_pipe(struct connection *, int pipe, size_t size);

/* Keeps the request for the operation after `start` returns; the operation gives it to `request_free`. */
uint8_t *connection_keep_body(struct connection *, size_t *size);
void request_free(uint8_t *body, size_t size);

/*
 * Takes the socket out of a drained connection and frees the connection, for an operation that goes on raw. Its peer
 * must not have sent anything behind the request yet.
 */
int connection_take_over(struct connection *);
/* Such an operation still counts as a connection until it says this. */
void connection_slot_free(void);

#endif
