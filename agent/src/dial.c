/*
 * DIAL: connects to a port inside the sandbox and relays raw bytes. Either direction can end alone, and buffers the bytes of at
 * most one read.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "operations.h"

#define READS_PER_ROUND 4
#define CONNECT_MILLISECONDS 10000u

enum { PEER, PORT };

/* A direction of the tunnel. `pending`: bytes that came from one end and were not sent to the other end yet. */
struct stream {
  uint8_t *pending;
  size_t start, end;
  bool ended;
  bool dropped; /* the other end no longer accepts bytes, so the bytes for it are dropped */
};

struct tunnel {
  struct connection *connection; /* used only until the connect has succeeded or failed */
  struct timer deadline;
  struct source end[2];
  struct stream from[2];
  uint16_t port;
  bool second_try;
};

static uint8_t scratch[CHUNK];

/* ---- relaying bytes ---- */

static void tunnel_close(struct tunnel *tunnel) {
  for (int i = 0; i < 2; i++) {
    source_close(&tunnel->end[i]);
    free(tunnel->from[i].pending);
  }
  connection_slot_free();
  bury(tunnel);
}

/*
 * A server may answer and close before it has received everything. Then the unsent bytes are dropped, and the server's answer is
 * still relayed. Returns false if the tunnel is closed.
 */
static bool send_failed(struct tunnel *tunnel, int from) {
  if (from == PORT) {
    tunnel_close(tunnel);
    return false;
  }
  tunnel->from[from].dropped = true;
  return true;
}

static bool is_waiting(const struct stream *stream) { return stream->start < stream->end; }

/* Sends pending bytes of one direction. Returns false if the tunnel is closed. */
static bool send_pending(struct tunnel *tunnel, int from) {
  struct stream *stream = &tunnel->from[from];
  while (is_waiting(stream)) {
    ssize_t sent = send(tunnel->end[!from].fd, stream->pending + stream->start, stream->end - stream->start, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return true;
    if (sent < 0 && !send_failed(tunnel, from)) return false;
    stream->start = sent < 0 ? stream->end : stream->start + (size_t)sent;
  }
  free(stream->pending);
  *stream = (struct stream){.ended = stream->ended, .dropped = stream->dropped};
  if (stream->ended) shutdown(tunnel->end[!from].fd, SHUT_WR);
  return true;
}

static bool receive(struct tunnel *tunnel, int from) {
  struct stream *stream = &tunnel->from[from];
  for (int i = 0; i < READS_PER_ROUND && !is_waiting(stream) && !stream->ended; i++) {
    ssize_t got = recv(tunnel->end[from].fd, scratch, sizeof scratch, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got < 0) {
      tunnel_close(tunnel);
      return false;
    }
    stream->ended = got == 0;
    if (stream->dropped) continue;
    ssize_t sent = got == 0 ? 0 : send(tunnel->end[!from].fd, scratch, (size_t)got, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      if (!send_failed(tunnel, from)) return false;
      continue;
    }
    if (sent < 0) sent = 0;
    if (sent < got) {
      stream->pending = malloc((size_t)(got - sent));
      if (!stream->pending) {
        tunnel_close(tunnel);
        return false;
      }
      stream->end = (size_t)(got - sent);
      memcpy(stream->pending, scratch + sent, stream->end);
    }
    if (stream->ended) return send_pending(tunnel, from);
  }
  return true;
}

static void watch(struct tunnel *tunnel) {
  for (int i = 0; i < 2; i++) {
    uint32_t events = 0;
    if (!tunnel->from[i].ended && !is_waiting(&tunnel->from[i])) events |= EPOLLIN;
    if (is_waiting(&tunnel->from[!i])) events |= EPOLLOUT;
    /*
     * This end of the tunnel sends no more, but the agent must notice when this end disconnects. EPOLLERR is enough for that,
     * because epoll always reports errors and hang-ups. With 0 events, `source_watch` would remove this end from epoll.
     */
    if (!events && tunnel->from[i].ended) events = EPOLLERR;
    source_watch(&tunnel->end[i], events);
  }
}

static void on_ready(struct tunnel *tunnel, int which, uint32_t events) {
  bool gone = tunnel->from[which].ended && (events & (EPOLLHUP | EPOLLERR));
  if (events & EPOLLOUT && !send_pending(tunnel, !which)) return;
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !receive(tunnel, which)) return;
  bool both_ended = tunnel->from[PEER].ended && tunnel->from[PORT].ended;
  bool nothing_left = !is_waiting(&tunnel->from[PEER]) && !is_waiting(&tunnel->from[PORT]);
  if ((both_ended && nothing_left) || (gone && !is_waiting(&tunnel->from[which]))) {
    tunnel_close(tunnel);
    return;
  }
  watch(tunnel);
  if (gone) source_watch(&tunnel->end[which], 0); /* the last bytes of this end must still reach the other end */
}

static void on_peer(struct source *source, uint32_t events) {
  on_ready(owner_of(source, struct tunnel, end[PEER]), PEER, events);
}

static void on_port(struct source *source, uint32_t events) {
  on_ready(owner_of(source, struct tunnel, end[PORT]), PORT, events);
}

/* ---- connecting to the port in the sandbox that the peer requests ---- */

static int connect_to(uint16_t port, bool second_try) {
  int fd = socket(second_try ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  int done = second_try ? connect(fd, (struct sockaddr *)&v6, sizeof v6) : connect(fd, (struct sockaddr *)&v4, sizeof v4);
  if (done == 0 || errno == EINPROGRESS) return fd;
  int reason = errno;
  close(fd);
  errno = reason;
  return -1;
}

static void on_answer(struct source *, uint32_t events);
static void try_connect(struct tunnel *);

/* Tries ::1 if 127.0.0.1 has refused the connection. If both fail, the peer gets the error of the connect to 127.0.0.1. */
static void connect_failed(struct tunnel *tunnel, int reason) {
  if (reason == ECONNREFUSED && !tunnel->second_try) {
    tunnel->second_try = true;
    try_connect(tunnel);
    return;
  }
  connection_fail(tunnel->connection, STAGE_CONNECT, tunnel->second_try ? ECONNREFUSED : reason);
}

static void try_connect(struct tunnel *tunnel) {
  int fd = connect_to(tunnel->port, tunnel->second_try);
  if (fd < 0) {
    connect_failed(tunnel, errno);
    return;
  }
  source_open(&tunnel->end[PORT], fd, on_answer);
  source_watch(&tunnel->end[PORT], EPOLLOUT);
}

static void on_answer(struct source *source, uint32_t events) {
  (void)events;
  struct tunnel *tunnel = owner_of(source, struct tunnel, end[PORT]);
  struct connection *connection = tunnel->connection;
  int reason = 0;
  socklen_t size = sizeof reason;
  if (getsockopt(source->fd, SOL_SOCKET, SO_ERROR, &reason, &size) < 0) reason = errno;
  if (reason != 0) {
    source_close(source);
    connect_failed(tunnel, reason);
    return;
  }
  connection_send(connection, KIND_OK, NULL, 0);
  if (connection->socket.fd < 0) return;
  if (!connection_is_drained(connection)) {
    connection_close(connection);
    return;
  }
  timer_clear(&tunnel->deadline);
  tunnel->connection = NULL;
  source_open(&tunnel->end[PEER], connection_take_over(connection), on_peer);
  source->ready = on_port;
  watch(tunnel);
}

static void too_late(struct timer *timer) {
  connection_fail(owner_of(timer, struct tunnel, deadline)->connection, STAGE_CONNECT, ETIMEDOUT);
}

static void on_closed(struct connection *connection) {
  struct tunnel *tunnel = connection->state;
  timer_clear(&tunnel->deadline);
  source_close(&tunnel->end[PORT]);
  bury(tunnel);
}

static const struct operation dial_operation = {.closed = on_closed};

void dial_start(struct connection *connection, struct fields *request) {
  uint16_t port = take_u16(request);
  if (!fields_complete(request) || port == 0) {
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  struct tunnel *tunnel = calloc(1, sizeof *tunnel);
  if (!tunnel) {
    connection_fail(connection, STAGE_BUSY, ENOMEM);
    return;
  }
  tunnel->connection = connection;
  tunnel->port = port;
  tunnel->end[PEER].fd = tunnel->end[PORT].fd = -1;
  connection->operation = &dial_operation;
  connection->state = tunnel;
  timer_set(&tunnel->deadline, CONNECT_MILLISECONDS, too_late);
  try_connect(tunnel);
}
