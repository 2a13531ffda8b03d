/*
 * The sudo of a sandbox: the client that a user starts, and the agent's side. PROTOCOL.md describes the messages between them.
 */
#ifndef ALCOVE_SUDO_H
#define ALCOVE_SUDO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SUDO_SOCKET "/dev/.alcove/sudo"
#define SUDO_REQUEST_MAX (8u << 20)
#define SUDO_HEADER 5u /* u8 sudo_descriptors, u32 size of the request */

/* The descriptors that the client sends with the header, besides descriptors 0, 1 and 2 of the command. */
enum sudo_descriptors { SUDO_HAS_DIRECTORY = 1, SUDO_HAS_TERMINAL = 2, SUDO_DESCRIPTORS = 3 };

enum sudo_flags {
  SUDO_FOREGROUND = 1, /* the command begins in the foreground of its terminal */
  SUDO_LOGIN = 2,
  SUDO_SHELL = 4,
  SUDO_KEEP_ENVIRONMENT = 8,
  SUDO_SET_HOME = 16,
  SUDO_ASK = 32, /* asks only whether the caller may use sudo */
  SUDO_FLAGS = 63,
};

/* Messages between client and agent, after the client's request. A message has two bytes: its kind, and a value. */
enum sudo_message {
  /* Messages to the agent. */
  SUDO_SIGNAL = 1,   /* value: the signal */
  SUDO_CONTINUE = 2, /* value 1: in the foreground */
  /* Messages from the agent. */
  SUDO_STARTED = 3,
  SUDO_STOPPED = 4, /* value: the signal */
  SUDO_EXITED = 5,  /* value: the exit code */
  SUDO_KILLED = 6,  /* value: the signal */
  SUDO_REFUSED = 7, /* value: enum sudo_refusal */
};

enum sudo_refusal { SUDO_NOT_ALLOWED = 1, SUDO_BUSY = 2, SUDO_MALFORMED = 3 };

/* ---- functions of the agent ---- */

/* The user who may use sudo besides root ("*": every user), and the PATH in which commands are found. */
struct sudo_policy {
  const char *socket, *user, *path;
};

/* Starts listening in the sandbox. If that fails, the sandbox has no sudo. */
void sudo_start(const struct sudo_policy *);
/*
 * Returns the pid of the sudo client for which the process `server` (`sudo_serve`) runs a command. Returns 0 if `server` is no such
 * process, or if its client has ended (sudo -b).
 */
pid_t sudo_client_of(pid_t server);

/* A client of sudo: the connection to it (`fd`), and the user and group of its process, as the kernel reports them. */
struct sudo_peer {
  int fd;
  uid_t uid;
  gid_t gid;
};

/* Runs in a separate process: serves one client until its command has ended. */
_Noreturn void sudo_serve(const struct sudo_policy *, const struct sudo_peer *);

/* ---- functions of the sudo client ---- */

_Noreturn void sudo_client(int argc, char **argv);

#endif
