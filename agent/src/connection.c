/*
 * Accepts connections, reads their frames, and limits what they use. No peer can make the agent read, allocate or wait without a
 * limit.
 */
#include "connection.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "operations.h"

#define CONNECTIONS_MAX 1024
#define ACCEPTS_PER_ROUND 64
#define IN_ROOM 4096u
#define READ_ROOM 65536u
#define HELD_MAX 64u
#define OUT_ROOM(chunk) (FRAME_HEADER + (chunk) + 2048u)
#define REQUESTS_MAX (64u * 1024u * 1024u) /* bytes of all requests that are being received or kept */
#define REQUEST_MILLISECONDS 30000u
#define ENDING_MILLISECONDS 10000u
#define ACCEPT_AGAIN_MILLISECONDS 200u

static struct source listener;
static struct timer accept_again;
static struct connection *connections;
static unsigned slots_taken;
static size_t request_bytes;

/* ---- sending frames ---- */

static void watch(struct connection *connection) {
  source_watch(&connection->socket, EPOLLIN | EPOLLRDHUP | (connection->blocked ? EPOLLOUT : 0));
}

void connection_flush(struct connection *connection) {
  while (connection->socket.fd >= 0 && connection->out_start < connection->out_end) {
    ssize_t sent = send(connection->socket.fd, connection->out + connection->out_start,
                        connection->out_end - connection->out_start, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) {
      connection->blocked = true;
      break;
    }
    if (sent < 0) {
      connection_close(connection);
      return;
    }
    connection->out_start += (size_t)sent;
  }
  if (connection->socket.fd < 0) return;
  if (connection->out_start == connection->out_end) {
    connection->out_start = connection->out_end = 0;
    /* Shut down only the sending side. If the peer still sends, a full close could destroy the answer before the peer reads it. */
    if (connection->ending) shutdown(connection->socket.fd, SHUT_WR);
  }
  watch(connection);
}

bool connection_is_drained(const struct connection *connection) {
  return connection->socket.fd >= 0 && !connection->ending && !connection->blocked && connection->out_end <= HELD_MAX;
}

size_t connection_widen(struct connection *connection) {
  if (connection->out_room >= OUT_ROOM(LONG_CHUNK)) return LONG_CHUNK;
  uint8_t *out = realloc(connection->out, OUT_ROOM(LONG_CHUNK));
  if (!out) return CHUNK;
  connection->out = out;
  connection->out_room = OUT_ROOM(LONG_CHUNK);
  /* With a large send buffer, the peer wakes up less often. The kernel may give a smaller buffer. */
  setsockopt(connection->socket.fd, SOL_SOCKET, SO_SNDBUF, &(int){2 * LONG_CHUNK}, sizeof(int));
  return LONG_CHUNK;
}

uint8_t *connection_chunk(struct connection *connection) { return connection->out + connection->out_end + FRAME_HEADER; }

static void put_frame(struct connection *connection, uint8_t kind, uint32_t size) {
  uint8_t *header = connection->out + connection->out_end;
  put_u32(header, size)[0] = kind;
  connection->out_end += FRAME_HEADER + size;
}

void connection_send_chunk(struct connection *connection, uint8_t kind, uint32_t size) {
  put_frame(connection, kind, size);
  connection_flush(connection);
}

bool connection_send_pipe(struct connection *connection, int pipe, size_t size) {
  ssize_t sent = 0, moved = 1;
  for (; moved > 0 && (size_t)sent < size; sent += moved > 0 ? moved : 0)
    moved = splice(pipe, NULL, connection->socket.fd, NULL, size - (size_t)sent, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if ((size_t)sent == size) return true;
  /*
   * Keep the bytes that the socket did not accept, and send them later. If the socket has failed, the next send reports the
   * failure.
   */
  ssize_t left = read(pipe, connection->out, size - (size_t)sent);
  if (sent + left == (ssize_t)size) {
    connection->out_end = (size_t)left;
    connection_flush(connection);
    return true;
  }
  connection_close(connection);
  return false;
}

void connection_hold(struct connection *connection, uint8_t kind, const void *payload, uint32_t size) {
  if (connection->socket.fd < 0 || connection->ending) return;
  if (connection->out_end + FRAME_HEADER + size > connection->out_room) {
    connection_close(connection); /* cannot happen while operations respect their limits */
    return;
  }
  if (size) memcpy(connection_chunk(connection), payload, size);
  put_frame(connection, kind, size);
}

void connection_send(struct connection *connection, uint8_t kind, const void *payload, uint32_t size) {
  connection_hold(connection, kind, payload, size);
  connection_flush(connection);
}

static void give_up(struct timer *timer) { connection_close(owner_of(timer, struct connection, deadline)); }

void connection_end(struct connection *connection) {
  if (connection->socket.fd < 0 || connection->ending) return;
  connection->ending = true;
  timer_set(&connection->deadline, ENDING_MILLISECONDS, give_up);
  connection_flush(connection);
}

void connection_fail(struct connection *connection, enum stage stage, int error_number) {
  uint8_t payload[5] = {(uint8_t)stage};
  put_u32(payload + 1, (uint32_t)error_number);
  connection_send(connection, KIND_FAILED, payload, sizeof payload);
  connection_end(connection);
}

/* ---- receiving the request ---- */

void request_free(uint8_t *body, size_t size) {
  request_bytes -= size;
  free(body);
}

uint8_t *connection_keep_body(struct connection *connection, size_t *size) {
  uint8_t *body = connection->body;
  *size = connection->body_size;
  connection->body = NULL;
  connection->body_size = 0;
  return body;
}

static bool gather(struct connection *connection, const uint8_t *payload, uint32_t size) {
  if (size == 0) return true;
  if (connection->body_size + size > REQUEST_MAX) {
    connection_fail(connection, STAGE_PROTOCOL, EMSGSIZE);
    return false;
  }
  uint8_t *body = request_bytes + size > REQUESTS_MAX ? NULL : realloc(connection->body, connection->body_size + size);
  if (!body) {
    connection_fail(connection, STAGE_BUSY, ENOMEM);
    return false;
  }
  memcpy(body + connection->body_size, payload, size);
  connection->body = body;
  connection->body_size += size;
  request_bytes += size;
  return true;
}

static void handle(struct connection *connection, uint8_t kind, uint8_t *payload, uint32_t size) {
  if (connection->operation) {
    bool sense = connection->operation->frame && connection->operation->frame(connection, kind, payload, size);
    if (!sense) connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  if (!gather(connection, payload, size) || kind == KIND_PART) return;
  timer_clear(&connection->deadline);
  struct fields fields = {.at = connection->body, .end = connection->body + connection->body_size};
  operation_start(connection, kind, &fields);
  if (connection->socket.fd >= 0) {
    size_t kept;
    uint8_t *body = connection_keep_body(connection, &kept);
    request_free(body, kept);
  }
}

/* ---- reading frames ---- */

static bool make_room(struct connection *connection, size_t room) {
  if (room <= connection->in_room) return true;
  uint8_t *in = realloc(connection->in, room);
  if (!in) return false;
  connection->in = in;
  connection->in_room = room;
  return true;
}

static void shrink(struct connection *connection) {
  uint8_t *in = realloc(connection->in, IN_ROOM);
  if (!in) return;
  connection->in = in;
  connection->in_room = IN_ROOM;
}

static void parse(struct connection *connection) {
  connection->in_at = 0;
  while (!connection->ending && connection->in_size - connection->in_at >= FRAME_HEADER) {
    uint8_t *header = connection->in + connection->in_at;
    uint32_t size = get_u32(header);
    if (size > FRAME_MAX) {
      connection_fail(connection, STAGE_PROTOCOL, EMSGSIZE);
      return;
    }
    if (connection->in_size - connection->in_at - FRAME_HEADER < size) {
      /* Reserve room for the whole frame. The room uses no memory until the bytes of the frame arrive. */
      if (make_room(connection, connection->in_at + FRAME_HEADER + size)) break;
      connection_fail(connection, STAGE_BUSY, ENOMEM);
      return;
    }
    connection->in_at += FRAME_HEADER + size;
    handle(connection, header[4], header + FRAME_HEADER, size);
    if (connection->socket.fd < 0) return;
  }
  connection->in_size -= connection->in_at;
  memmove(connection->in, connection->in + connection->in_at, connection->in_size);
  if (connection->in_size == 0 && connection->in_room > 2 * READ_ROOM) shrink(connection);
}

static void on_readable(struct connection *connection) {
  if (connection->in_size == connection->in_room && !make_room(connection, connection->in_room + READ_ROOM)) {
    connection_fail(connection, STAGE_BUSY, ENOMEM);
    return;
  }
  ssize_t got = recv(connection->socket.fd, connection->in + connection->in_size,
                     connection->in_room - connection->in_size, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    connection_close(connection);
    return;
  }
  connection->in_size += (size_t)got;
  parse(connection);
}

/* Drops bytes that arrive after the end of the request. */
static void discard(struct connection *connection) {
  ssize_t got = recv(connection->socket.fd, connection->in, connection->in_room, 0);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) connection_close(connection);
}

static void on_ready(struct source *source, uint32_t events) {
  struct connection *connection = owner_of(source, struct connection, socket);
  if (events & EPOLLOUT) {
    connection->blocked = false;
    connection_flush(connection);
    if (connection_is_drained(connection) && connection->operation && connection->operation->drained)
      connection->operation->drained(connection);
  }
  if (connection->socket.fd < 0 || !(events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))) return;
  if (connection->ending) discard(connection);
  else on_readable(connection);
}

/* ---- opening and closing connections ---- */

static void accept_more(struct timer *timer) {
  (void)timer;
  source_watch(&listener, EPOLLIN);
}

void connection_slot_free(void) { slots_taken--; }

static void forget(struct connection *connection) {
  timer_clear(&connection->deadline);
  if (connection->previous) connection->previous->next = connection->next;
  else connections = connection->next;
  if (connection->next) connection->next->previous = connection->previous;
  request_free(connection->body, connection->body_size);
  free(connection->out);
  free(connection->in);
  connection->in = connection->out = connection->body = NULL;
  bury(connection);
}

void connection_close(struct connection *connection) {
  if (connection->socket.fd < 0) return;
  source_close(&connection->socket);
  slots_taken--;
  const struct operation *operation = connection->operation;
  connection->operation = NULL;
  if (operation && operation->closed) operation->closed(connection);
  forget(connection);
}

int connection_take_over(struct connection *connection) {
  int fd = source_release(&connection->socket);
  connection->operation = NULL;
  forget(connection);
  return fd;
}

static void open_connection(int fd) {
  struct connection *connection = calloc(1, sizeof *connection);
  uint8_t *in = malloc(IN_ROOM), *out = malloc(OUT_ROOM(CHUNK));
  if (!connection || !in || !out) {
    free(connection);
    free(in);
    free(out);
    close(fd);
    return;
  }
  slots_taken++;
  connection->in = in;
  connection->in_room = IN_ROOM;
  connection->out = out;
  connection->out_room = OUT_ROOM(CHUNK);
  connection->next = connections;
  if (connections) connections->previous = connection;
  connections = connection;
  source_open(&connection->socket, fd, on_ready);
  if (slots_taken > 2 * CONNECTIONS_MAX) {
    connection_close(connection);
    return;
  }
  if (slots_taken > CONNECTIONS_MAX) {
    connection_fail(connection, STAGE_BUSY, EMFILE);
    return;
  }
  timer_set(&connection->deadline, REQUEST_MILLISECONDS, give_up);
  watch(connection);
  on_ready(&connection->socket, EPOLLIN); /* read immediately, because the request has usually arrived already */
}

static void on_connection(struct source *source, uint32_t events) {
  (void)events;
  for (int i = 0; i < ACCEPTS_PER_ROUND; i++) {
    int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      open_connection(fd);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EAGAIN) {
      /*
       * Stop accepting connections for a while: no descriptor or memory is left. Otherwise epoll would report the waiting
       * connection again and again.
       */
      source_watch(source, 0);
      timer_set(&accept_again, ACCEPT_AGAIN_MILLISECONDS, accept_more);
    }
    return;
  }
}

void connections_start(int listening_fd) {
  source_open(&listener, listening_fd, on_connection);
  source_watch(&listener, EPOLLIN);
}
