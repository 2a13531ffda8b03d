/* Sends stored output to its followers when output arrives. Each follower gets as many bytes as its peer accepts. */
#include "record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pages.h"

/* A command that writes fast is slowed down for a slow follower only if the follower has received bytes within this time. */
#define TAKING_MILLISECONDS 250u

struct follower {
  struct record *record;
  struct connection *connection;
  uint64_t offset, goal; /* offset: bytes sent so far; goal: the offset at which the status is sent */
  uint64_t taken_at; /* when the follower's peer last accepted more bytes, in ms of the monotonic clock */
  bool follows;
  struct follower *next;
};

static void say_lost(struct follower *follower, uint64_t count) {
  uint8_t payload[8];
  put_u64(payload, count);
  follower->offset += count;
  connection_send(follower->connection, KIND_LOST, payload, sizeof payload);
}

static void say_end(struct follower *follower) {
  const struct record *record = follower->record;
  if (record->ended) connection_send(follower->connection, KIND_EXIT, record->exit, sizeof record->exit);
  else connection_send(follower->connection, KIND_END, NULL, 0);
  connection_end(follower->connection);
}

static const uint8_t kinds[] = {[FROM_STDOUT] = KIND_STDOUT, [FROM_STDERR] = KIND_STDERR};

/* Updates a follower after `size` bytes were sent to it. */
static void passed(struct follower *follower, size_t size) {
  follower->offset += size;
  follower->taken_at = now_milliseconds();
}

static void say_output(struct follower *follower, uint64_t until) {
  enum origin origin;
  uint64_t waiting = until - follower->offset;
  size_t most = waiting > CHUNK ? connection_widen(follower->connection) : CHUNK;
  size_t room = waiting < most ? (size_t)waiting : most;
  size_t size =
      ring_read(&follower->record->ring, follower->offset, connection_chunk(follower->connection), room, &origin);
  if (origin == LOST) {
    say_lost(follower, size < until - follower->offset ? size : until - follower->offset);
    return;
  }
  passed(follower, size);
  connection_send_chunk(follower->connection, kinds[origin], (uint32_t)size);
}

static void pump(struct follower *follower) {
  const struct ring *ring = &follower->record->ring;
  while (connection_is_drained(follower->connection)) {
    uint64_t until = ring->end < follower->goal ? ring->end : follower->goal;
    uint64_t next = ring_next(ring, follower->offset);
    if (follower->offset < until && follower->offset < next)
      say_lost(follower, (next < until ? next : until) - follower->offset);
    else if (follower->offset < until) say_output(follower, until);
    else if (follower->offset >= follower->goal) say_end(follower);
    else return;
  }
}

static bool is_pressed(const struct follower *follower) {
  return follower->follows && follower->connection->blocked &&
         now_milliseconds() - follower->taken_at < TAKING_MILLISECONDS;
}

bool record_is_pressed(const struct record *record) {
  for (const struct follower *follower = record->followers; follower; follower = follower->next)
    if (is_pressed(follower)) return true;
  return false;
}

static void on_drained(struct connection *connection) {
  struct follower *follower = connection->state;
  struct record *record = follower->record;
  follower->taken_at = now_milliseconds();
  pump(follower);
  if (record->eased && !record_is_pressed(record)) record->eased(record);
}

static void on_closed(struct connection *connection) {
  struct follower *follower = connection->state;
  struct record *record = follower->record;
  for (struct follower **link = &record->followers; *link; link = &(*link)->next)
    if (*link == follower) {
      *link = follower->next;
      break;
    }
  bury(follower);
  record->left(record);
}

static const struct operation follow_operation = {.drained = on_drained, .closed = on_closed};

void record_start(struct record *record, void (*left)(struct record *)) {
  record->ended = false;
  record->followers = NULL;
  record->left = left;
  record->eased = NULL;
}

void record_wake(struct record *record) {
  for (struct follower *follower = record->followers, *next; follower; follower = next) {
    next = follower->next;
    pump(follower);
  }
}

/* Finds a follower that has received everything so far and whose peer accepts more. */
static struct follower *find_ready(const struct record *record) {
  for (struct follower *follower = record->followers; follower; follower = follower->next)
    if (follower->follows && follower->offset == record->ring.end && connection_is_drained(follower->connection) &&
        follower->connection->out_end == 0 && connection_widen(follower->connection) == LONG_CHUNK)
      return follower;
  return NULL;
}

/*
 * Copies the output in the pipe `taken` (pages.h) into the ring. Returns false if not all output can be read: a hostile program can
 * supply pages that fail when they are read.
 */
static bool keep_pages(struct ring *ring, enum origin origin, size_t size) {
  while (size > 0) {
    ssize_t got = ring_take(ring, origin, pages_taken(), size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size -= (size_t)got;
  }
  if (size > 0) ring_lose(ring, size);
  return size == 0;
}

ssize_t record_take(struct record *record, enum origin origin, int pipe, size_t at_most) {
  struct follower *follower = find_ready(record);
  if (!follower || !pages_ready()) return ring_take(&record->ring, origin, pipe, at_most);
  ssize_t got = pages_take(pipe, at_most);
  if (got <= 0) return got;
  size_t size = (size_t)got;
  uint8_t header[FRAME_HEADER];
  put_u32(header, (uint32_t)size)[0] = kinds[origin];
  /*
   * Output of at least CHUNK bytes is not copied for the follower, which gets the pages of the pipe. Less output is copied, because
   * a copy takes less memory than whole pages.
   */
  bool is_double = size >= CHUNK;
  bool is_well = !is_double || pages_double(header, size);
  is_well &= keep_pages(&record->ring, origin, size);
  if (is_well && is_double) {
    passed(follower, size);
    is_well = connection_send_pipe(follower->connection, pages_doubled(), FRAME_HEADER + size);
  }
  if (!is_well) pages_drop();
  return got;
}

void record_end(struct record *record, const uint8_t exit[5]) {
  record->ended = true;
  memcpy(record->exit, exit, sizeof record->exit);
  for (struct follower *follower = record->followers; follower; follower = follower->next)
    if (follower->follows) follower->goal = record->ring.end;
  record_wake(record);
}

void record_follow(struct connection *connection, struct record *record, uint64_t offset, bool follows) {
  struct follower *follower = offset <= record->ring.end ? malloc(sizeof *follower) : NULL;
  if (!follower) {
    connection_fail(connection, STAGE_JOB, offset <= record->ring.end ? ENOMEM : ERANGE);
    return;
  }
  *follower = (struct follower){.record = record, .connection = connection, .offset = offset, .follows = follows,
                                .taken_at = now_milliseconds(),
                                .goal = follows && !record->ended ? UINT64_MAX : record->ring.end,
                                .next = record->followers};
  record->followers = follower;
  connection->operation = &follow_operation;
  connection->state = follower;
  uint8_t payload[16];
  put_u64(put_u64(payload, ring_next(&record->ring, 0)), record->ring.end);
  connection_send(connection, KIND_OK, payload, sizeof payload);
  if (connection->socket.fd >= 0) pump(follower);
}
