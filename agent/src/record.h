/*
 * What something wrote and how it ended, with those who follow it. A follower holds nothing but its offset; one that is
 * too slow finds that the ring has passed it, and is told how much it missed.
 */
#ifndef ALCOVE_RECORD_H
#define ALCOVE_RECORD_H

#include "connection.h"
#include "ring.h"

struct follower;

struct record {
  struct ring ring;
  bool ended;
  uint8_t exit[5]; /* once it has ended: the payload of EXIT */
  struct follower *followers;
  void (*left)(struct record *); /* a follower has gone */
  void (*eased)(struct record *); /* a follower has caught up; may be NULL */
};

/* The ring is opened by whoever owns the record. */
void record_start(struct record *, void (*left)(struct record *));
/* Does what ring_take does, for much data: a follower who has everything so far is sent it at once, without a copy. */
ssize_t record_take(struct record *, enum origin, int pipe, size_t at_most);
/* There is more to read. */
void record_wake(struct record *);
/* Somebody who is taking what comes has no room for more just now. */
bool record_is_pressed(const struct record *);
/* Sends followers the rest, and the exit. */
void record_end(struct record *, const uint8_t exit[5]);

/* Answers OK, and sends what was asked for on this connection as it comes. */
void record_follow(struct connection *, struct record *, uint64_t offset, bool follows);

#endif
