/*
 * Calls back for ready descriptors and timers, and frees memory only when no event can refer to it. There is one thread, so a
 * callback must never block.
 */
#ifndef ALCOVE_LOOP_H
#define ALCOVE_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

/* A descriptor that the loop watches. It is a field of its owner's struct, which `owner_of` returns. */
struct source {
  int fd; /* -1 if the descriptor is closed */
  uint32_t watched;
  void (*ready)(struct source *, uint32_t events);
  bool polled; /* the kernel refused to watch this descriptor, so the loop polls it */
  struct source *next_polled;
};

struct timer {
  uint64_t at; /* when the timer fires, in ms of the monotonic clock; 0: not set */
  void (*fire)(struct timer *);
  struct timer *next;
};

#define owner_of(pointer, type, member) ((type *)(void *)((char *)(pointer) - offsetof(type, member)))

void loop_start(void);
_Noreturn void loop_run(void);

/* Takes over the descriptor. No event of the descriptor is watched yet. */
void source_open(struct source *, int fd, void (*ready)(struct source *, uint32_t));
/*
 * Sets the events to watch. Use 0 while the agent waits for no event: 0 removes the descriptor from epoll. Otherwise epoll reports
 * a hang-up again and again.
 */
void source_watch(struct source *, uint32_t events);
/* Stops watching and returns the descriptor. */
int source_release(struct source *);
void source_close(struct source *);

uint64_t now_milliseconds(void);
/* Returns the wall-clock time in milliseconds since 1970. */
uint64_t wall_milliseconds(void);
/*
 * Calls `fire` once, after this time. A second `timer_set` replaces the first. The function `timer_clear` cancels the call of
 * `fire`.
 */
void timer_set(struct timer *, uint64_t after_milliseconds, void (*fire)(struct timer *));
void timer_clear(struct timer *);

/* Frees memory at the end of the current round of events, because an event of this round may still refer to it. */
void bury(void *memory);

#endif
