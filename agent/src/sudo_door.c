/*
 * The only socket on which the sandbox can talk to the agent. The agent itself reads nothing from this socket: each connection gets
 * a separate process, which reads the client's messages.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "descendants.h"
#include "loop.h"
#include "reaper.h"
#include "setup.h"
#include "sudo.h"

#define SERVERS_MAX 512
#define BACKLOG 256
#define ACCEPTS_PER_ROUND 4
#define ACCEPT_AGAIN_MILLISECONDS 200u
#define PEER_FD 3

struct server {
  struct child child;
  pid_t pid;
  struct process_mark client;
  struct server *next;
};

static struct source door;
static struct timer accept_again;
static struct sudo_policy policy;
static struct server *servers;
static unsigned server_count;

pid_t sudo_client_of(pid_t pid) {
  for (struct server *server = servers; server; server = server->next)
    if (server->pid == pid) return process_lives(&server->client) ? server->client.pid : 0;
  return 0;
}

static void on_ended(struct child *child, int status) {
  (void)status;
  struct server *server = owner_of(child, struct server, child);
  for (struct server **link = &servers; *link; link = &(*link)->next)
    if (*link == server) {
      *link = server->next;
      break;
    }
  server_count--;
  source_watch(&door, EPOLLIN);
  bury(server);
}

_Noreturn static void become_server(int fd, const struct ucred *who) {
  setup_child();
  servers = NULL; /* this process cannot see when servers end, so pids in its copy of the list would become wrong */
  /* The command must not inherit this socket: a process that has it could send messages to the client in the agent's name. */
  if (fd != PEER_FD && dup3(fd, PEER_FD, O_CLOEXEC) < 0) _exit(1);
  close_from(PEER_FD + 1);
  sudo_serve(&policy, &(struct sudo_peer){.fd = PEER_FD, .uid = who->uid, .gid = who->gid});
}

static bool serve(int fd) {
  struct ucred who;
  socklen_t size = sizeof who;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0) return false;
  struct server *server = calloc(1, sizeof *server);
  if (!server) return false;
  pid_t pid = fork();
  if (pid == 0) become_server(fd, &who);
  if (pid < 0) {
    free(server);
    return false;
  }
  server->pid = pid;
  server->client = process_mark_of(who.pid);
  server->next = servers;
  servers = server;
  server_count++;
  reaper_expect(&server->child, pid, on_ended);
  return true;
}

static void watch_again(struct timer *timer) {
  (void)timer;
  source_watch(&door, EPOLLIN);
}

/* Accepts only a few clients per call, so that the agent also does its other work while a program connects all the time. */
static void on_knock(struct source *source, uint32_t events) {
  (void)events;
  for (int i = 0; i < ACCEPTS_PER_ROUND; i++) {
    if (server_count == SERVERS_MAX) {
      source_watch(source, 0); /* further clients wait in the backlog until a server ends */
      return;
    }
    int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (fd < 0) {
      if (errno == EAGAIN) return;
      source_watch(source, 0); /* descriptors or memory are used up */
      timer_set(&accept_again, ACCEPT_AGAIN_MILLISECONDS, watch_again);
      return;
    }
    static const uint8_t busy[2] = {SUDO_REFUSED, SUDO_BUSY};
    if (!serve(fd)) (void)!send(fd, busy, sizeof busy, MSG_DONTWAIT | MSG_NOSIGNAL);
    close(fd);
  }
}

void sudo_start(const struct sudo_policy *wanted) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(wanted->socket) >= sizeof address.sun_path) return;
  strcpy(address.sun_path, wanted->socket);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || chmod(wanted->socket, 0666) < 0 || listen(fd, BACKLOG) < 0) {
    close(fd);
    return;
  }
  policy = *wanted;
  source_open(&door, fd, on_knock);
  source_watch(&door, EPOLLIN);
}
