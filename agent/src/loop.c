/*
 * An epoll loop with three rules.
 * 1. A source that is watched for no event is removed from epoll, which would otherwise report its hang-up again and again.
 * 2. A source that epoll refuses is checked every POLL_MILLISECONDS. Epoll refuses if another sandbox with the same uid has used
 * up max_user_watches.
 * 3. Memory is freed only after all events of one epoll_wait were handled.
 */
#include "loop.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROUND 64
#define POLL_MILLISECONDS 20

static int epoll_fd = -1;
static struct timer *timers;
static struct source *polled;
static void **graves;
static size_t grave_count, grave_room;

void loop_start(void) {
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd < 0) abort();
}

uint64_t now_milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

uint64_t wall_milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

void source_open(struct source *source, int fd, void (*ready)(struct source *, uint32_t)) {
  *source = (struct source){.fd = fd, .ready = ready};
}

static void stop_polling(struct source *source) {
  if (!source->polled) return;
  for (struct source **link = &polled; *link; link = &(*link)->next_polled)
    if (*link == source) {
      *link = source->next_polled;
      break;
    }
  source->polled = false;
}

void source_watch(struct source *source, uint32_t events) {
  if (source->fd < 0 || source->watched == events) return;
  struct epoll_event event = {.events = events, .data.ptr = source};
  if (source->polled) {
    if (!events) stop_polling(source);
  } else if (!events) {
    epoll_ctl(epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
  } else if (epoll_ctl(epoll_fd, source->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, source->fd, &event) < 0) {
    source->polled = true;
    source->next_polled = polled;
    polled = source;
  }
  source->watched = events;
}

int source_release(struct source *source) {
  int fd = source->fd;
  source_watch(source, 0);
  source->fd = -1;
  return fd;
}

void source_close(struct source *source) {
  int fd = source_release(source);
  if (fd >= 0) close(fd);
}

void timer_set(struct timer *timer, uint64_t after_milliseconds, void (*fire)(struct timer *)) {
  timer_clear(timer);
  timer->at = now_milliseconds() + after_milliseconds;
  timer->fire = fire;
  timer->next = timers;
  timers = timer;
}

void timer_clear(struct timer *timer) {
  if (!timer->at) return;
  for (struct timer **link = &timers; *link; link = &(*link)->next)
    if (*link == timer) {
      *link = timer->next;
      break;
    }
  timer->at = 0;
}

/*
 * Frees memory at the end of the current round of `loop_run`. An event of this round may still refer to the memory. The handler of
 * this event finds the descriptor -1, and does nothing.
 */
void bury(void *memory) {
  if (!memory) return;
  if (grave_count == grave_room) {
    void **more = realloc(graves, (grave_room + ROUND) * sizeof *more);
    if (!more) return; /* the memory is leaked, which is better than a use after free */
    graves = more;
    grave_room += ROUND;
  }
  graves[grave_count++] = memory;
}

static int next_timeout(void) {
  uint64_t wait = polled ? POLL_MILLISECONDS : UINT64_MAX;
  uint64_t now = timers ? now_milliseconds() : 0;
  for (struct timer *timer = timers; timer; timer = timer->next) {
    uint64_t left = timer->at > now ? timer->at - now : 0;
    if (left < wait) wait = left;
  }
  return wait == UINT64_MAX ? -1 : wait > 60000 ? 60000 : (int)wait;
}

/* A callback may set or clear any timer, so the search for due timers begins again after each call. */
static void fire_timers(void) {
  if (!timers) return;
  uint64_t now = now_milliseconds();
  for (struct timer *timer = timers; timer;) {
    if (timer->at > now) {
      timer = timer->next;
      continue;
    }
    timer_clear(timer);
    timer->fire(timer);
    timer = timers;
  }
}

static void look_at_polled(void) {
  struct source *seen[ROUND];
  size_t count = 0;
  for (struct source *source = polled; source && count < ROUND; source = source->next_polled) seen[count++] = source;
  for (size_t i = 0; i < count; i++)
    if (seen[i]->fd >= 0 && seen[i]->polled) seen[i]->ready(seen[i], seen[i]->watched);
}

_Noreturn void loop_run(void) {
  struct epoll_event events[ROUND];
  for (;;) {
    int count = epoll_wait(epoll_fd, events, ROUND, next_timeout());
    if (count < 0 && errno != EINTR) abort();
    for (int i = 0; i < count; i++) {
      struct source *source = events[i].data.ptr;
      if (source->fd >= 0 && source->watched) source->ready(source, events[i].events);
    }
    look_at_polled();
    fire_timers();
    while (grave_count) free(graves[--grave_count]);
  }
}
