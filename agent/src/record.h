/*
 * The stored output and the exit of a process, and the connections that follow them. A follower stores only its offset in the
 * output. If it is too slow, the ring overwrites what it has not read yet. The follower then gets the number of missed bytes.
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
 * Initializes the record of a job or command, but not its ring: the job or command opens the ring itself. `left` is called
 * whenever a connection has stopped following the record.
 */
void record_start(struct record *, void (*left)(struct record *));
/*
 * Reads output from a pipe and stores it, like `ring_take`, but for large amounts of data. A follower that has received all
 * earlier output gets the new data directly from the pipe's pages.
 */
ssize_t record_take(struct record *, enum origin, int pipe, size_t at_most);
/* Sends new output to the followers. Call this after output was stored. */
void record_wake(struct record *);
/*
 * Returns true if a follower reads too slowly: its connection accepts no bytes at the moment, but accepted some within the last
 * TAKING_MILLISECONDS (record.c).
 */
bool record_is_pressed(const struct record *);
/* Sends followers the remaining output and then the exit. */
void record_end(struct record *, const uint8_t exit[5]);

/* Answers OK, then sends the requested output on this connection as it comes. */
void record_follow(struct connection *, struct record *, uint64_t offset, bool follows);

#endif
