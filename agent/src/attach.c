/*
 * ATTACH: the output of a job from an offset on, then as it comes, then how it ended. A follower holds nothing but its
 * offset; one that is too slow finds that the ring has passed it, and is told how much it missed.
 */
#include <errno.h>
#include <stdlib.h>

#include "job.h"
#include "operations.h"

static void say_lost(struct watcher *watcher, uint64_t count) {
  uint8_t payload[8];
  put_u64(payload, count);
  watcher->offset += count;
  connection_send(watcher->connection, KIND_LOST, payload, sizeof payload);
}

static void say_end(struct watcher *watcher) {
  uint8_t payload[5];
  exit_payload(payload, watcher->job->status);
  if (watcher->job->state == JOB_ENDED) connection_send(watcher->connection, KIND_EXIT, payload, sizeof payload);
  else connection_send(watcher->connection, KIND_END, NULL, 0);
  connection_end(watcher->connection);
}

static void say_output(struct watcher *watcher, uint64_t until) {
  static const uint8_t kinds[] = {[FROM_STDOUT] = KIND_STDOUT, [FROM_STDERR] = KIND_STDERR};
  enum origin origin;
  size_t room = until - watcher->offset < CHUNK ? (size_t)(until - watcher->offset) : CHUNK;
  size_t size = ring_read(&watcher->job->ring, watcher->offset, connection_chunk(watcher->connection), room, &origin);
  if (origin == LOST) {
    say_lost(watcher, size < until - watcher->offset ? size : until - watcher->offset);
    return;
  }
  watcher->offset += size;
  connection_send_chunk(watcher->connection, kinds[origin], (uint32_t)size);
}

static void pump(struct watcher *watcher) {
  const struct ring *ring = &watcher->job->ring;
  while (connection_is_drained(watcher->connection)) {
    uint64_t until = ring->end < watcher->goal ? ring->end : watcher->goal;
    uint64_t oldest = ring->start < until ? ring->start : until;
    if (watcher->offset < oldest) say_lost(watcher, oldest - watcher->offset);
    else if (watcher->offset < until) say_output(watcher, until);
    else if (watcher->offset >= watcher->goal) say_end(watcher);
    else return;
  }
}

void watchers_wake(struct job *job) {
  for (struct watcher *watcher = job->watchers, *next; watcher; watcher = next) {
    next = watcher->next;
    pump(watcher);
  }
}

static void on_drained(struct connection *connection) { pump(connection->state); }

static void on_closed(struct connection *connection) {
  struct watcher *watcher = connection->state;
  struct job *job = watcher->job;
  for (struct watcher **link = &job->watchers; *link; link = &(*link)->next)
    if (*link == watcher) {
      *link = watcher->next;
      break;
    }
  bury(watcher);
  if (job->unlisted) job_release(job);
}

static const struct operation attach_operation = {.drained = on_drained, .closed = on_closed};

void attach_start(struct connection *connection, struct fields *request) {
  char *id = take_string(request);
  uint64_t offset = take_u64(request);
  uint8_t follows = take_u8(request);
  if (!fields_complete(request) || follows > 1) {
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  struct job *job = job_named(connection, id);
  if (!job) return;
  struct watcher *watcher = offset <= job->ring.end ? malloc(sizeof *watcher) : NULL;
  if (!watcher) {
    connection_fail(connection, STAGE_JOB, offset <= job->ring.end ? ENOMEM : ERANGE);
    return;
  }
  *watcher = (struct watcher){.job = job, .connection = connection, .offset = offset, .follows = follows,
                              .goal = follows && job->state != JOB_ENDED ? UINT64_MAX : job->ring.end,
                              .next = job->watchers};
  job->watchers = watcher;
  connection->operation = &attach_operation;
  connection->state = watcher;
  uint8_t payload[16];
  put_u64(put_u64(payload, job->ring.start), job->ring.end);
  connection_send(connection, KIND_OK, payload, sizeof payload);
  if (connection->socket.fd >= 0) pump(watcher);
}
