/*
 * A record: the stored output and the exit of a process, and the connections that follow them. A follower stores only its offset.
 * If the follower is too slow, the ring overwrites unread output, and the follower gets the number of missed bytes.
 */
#ifndef ALCOVE_RECORD_H
#define ALCOVE_RECORD_H

#include "connection.h"
#include "ring.h"

struct follower;

struct record {
  struct ring ring;
  bool ended;
  uint8_t exit[5]; /* payload of EXIT, once ended */
  struct follower *followers;
  void (*left)(struct record *); /* called when a connection has stopped following */
  void (*eased)(struct record *); /* called when a follower has caught up; may be NULL */
};

/*
 * Initializes a record (the stored output of a process, and its followers), but not its ring. `left` is called whenever a
 * connection has stopped following the record.
 */
void record_start(struct record *, void (*left)(struct record *));
/*
 * Reads output from a pipe and stores it, like `ring_take`, but for large amounts. If a follower has all earlier output, it gets
 * large output without a copy (pages.h).
 */
ssize_t record_take(struct record *, enum origin, int pipe, size_t at_most);
/* Sends new output to the followers. Call this after output was stored. */
void record_wake(struct record *);
/*
 * Whether a follower is slow but still reads: its connection is full, and has received bytes within the last TAKING_MILLISECONDS
 * (record.c).
 */
bool record_is_pressed(const struct record *);
/* Sends followers the remaining output and then the exit. */
void record_end(struct record *, const uint8_t exit[5]);

/* Answers OK, then sends the requested output on this connection as it comes. */
void record_follow(struct connection *, struct record *, uint64_t offset, bool follows);

#endif
