/*
 * Forks a process for each file operation. The process uses blocking calls on the connection. SIGTERM interrupts these calls, so a
 * half-received upload is removed within the agent's grace period.
 */
#include "file_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "reaper.h"
#include "setup.h"
#include "user.h"

#define SERVERS_MAX 256
#define PATIENCE_SECONDS 600 /* timeout for a peer that neither reads nor writes */
#define FAREWELL_SECONDS 10

struct file_server {
  struct child child;
};

static unsigned servers;

/*
 * An empty file that serves only for locks: each locked byte stands for a file that is being written. Only the processes for file
 * operations inherit this file.
 */
static int locks = -1;

/* ---- functions that run in the forked process, which does one file operation ---- */

static volatile sig_atomic_t interrupted;

static void interrupt(int number) {
  (void)number;
  interrupted = 1;
}

static void wait_at_most(int seconds) {
  struct timeval patience = {.tv_sec = seconds};
  setsockopt(PEER, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(PEER, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

static void (*clear_at_end)(void);

void peer_at_end(void (*clear)(void)) { clear_at_end = clear; }

_Noreturn static void leave(int status) {
  if (clear_at_end) clear_at_end();
  _exit(status);
}

static void send_out(const void *bytes, size_t size) {
  const char *at = bytes;
  while (size > 0) {
    ssize_t sent = send(PEER, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR && !interrupted) continue;
    if (sent < 0) leave(1);
    at += sent;
    size -= (size_t)sent;
  }
}

static uint8_t gathered[CHUNK];
static size_t gathered_size;

void peer_flush(void) {
  size_t size = gathered_size;
  gathered_size = 0;
  send_out(gathered, size);
}

void peer_write(const void *bytes, size_t size) {
  peer_flush();
  send_out(bytes, size);
}

void peer_send(uint8_t kind, const void *payload, uint32_t size) {
  if (gathered_size + FRAME_HEADER + size > sizeof gathered) peer_flush();
  put_u32(gathered + gathered_size, size)[0] = kind;
  if (size) memcpy(gathered + gathered_size + FRAME_HEADER, payload, size);
  gathered_size += FRAME_HEADER + size;
}

_Noreturn void peer_done(void) {
  char rest[4096];
  peer_flush();
  shutdown(PEER, SHUT_WR);
  wait_at_most(FAREWELL_SECONDS);
  if (clear_at_end) clear_at_end();
  while (!interrupted && recv(PEER, rest, sizeof rest, 0) > 0) continue;
  _exit(0);
}

_Noreturn void peer_fail(enum stage stage, int error_number) {
  uint8_t payload[5] = {(uint8_t)stage};
  put_u32(payload + 1, (uint32_t)error_number);
  peer_send(KIND_FAILED, payload, sizeof payload);
  peer_done();
}

size_t peer_read(void *into, size_t size) {
  peer_flush();
  for (;;) {
    ssize_t got = interrupted ? 0 : recv(PEER, into, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) leave(1);
    return (size_t)got;
  }
}

bool peer_lock(uint64_t number) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)(number >> 1), .l_len = 1};
  return fcntl(LOCKS, F_SETLKW, &lock) == 0 || errno == EBADF;
}

void check_complete(const struct fields *request) {
  if (!fields_complete(request)) peer_fail(STAGE_PROTOCOL, EPROTO);
}

_Noreturn static void serve_as_user(int peer, struct fields *request, void (*serve)(struct fields *)) {
  setup_child();
  if (dup2(peer, PEER) < 0) _exit(1);
  close_from(locks >= 0 && dup2(locks, LOCKS) == LOCKS ? LOCKS + 1 : LOCKS);
  fcntl(PEER, F_SETFL, fcntl(PEER, F_GETFL) & ~O_NONBLOCK); /* the agent closes its own descriptor of the connection */
  wait_at_most(PATIENCE_SECONDS);
  signal(SIGPIPE, SIG_IGN);
  sigaction(SIGTERM, &(struct sigaction){.sa_handler = interrupt}, NULL);
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  const char *name = take_string(request);
  struct user user;
  if (!name) peer_fail(STAGE_PROTOCOL, EPROTO);
  if (!user_find(&user, name) || !user_become(&user)) peer_fail(STAGE_USER, errno);
  if (chdir(user.home) < 0 && chdir("/") < 0) peer_fail(STAGE_CWD, errno);
  umask(022);
  serve(request);
  peer_done();
}

/* ---- functions that run in the agent's own process ---- */

static void on_ended(struct child *child, int status) {
  (void)status;
  servers--;
  connection_slot_free();
  bury(owner_of(child, struct file_server, child));
}

void file_server_start(struct connection *connection, struct fields *request, void (*serve)(struct fields *)) {
  if (connection->in_size > connection->in_at) {
    connection_fail(connection, STAGE_PROTOCOL, EPROTO); /* bytes already read here would not reach the server */
    return;
  }
  if (locks < 0) locks = memfd_create("locks", MFD_CLOEXEC);
  struct file_server *server = servers < SERVERS_MAX ? calloc(1, sizeof *server) : NULL;
  if (!server) {
    connection_fail(connection, STAGE_BUSY, EAGAIN);
    return;
  }
  pid_t pid = fork();
  if (pid == 0) serve_as_user(connection->socket.fd, request, serve);
  if (pid < 0) {
    int reason = errno;
    free(server);
    connection_fail(connection, STAGE_SYSTEM, reason);
    return;
  }
  servers++;
  reaper_expect(&server->child, pid, on_ended);
  close(connection_take_over(connection));
}
