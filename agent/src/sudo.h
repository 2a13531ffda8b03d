/*
 * sudo, from both sides: the client that a user of the sandbox starts, and what the agent does for it. PROTOCOL.md says what
 * they say to each other.
 */
#ifndef ALCOVE_SUDO_H
#define ALCOVE_SUDO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SUDO_SOCKET "/dev/.alcove/sudo"
#define SUDO_REQUEST_MAX (8u << 20)
#define SUDO_HEADER 5u /* u8 which descriptors, u32 size of the request */

/* Descriptors that come with the header, behind 0, 1 and 2 of the command. */
enum sudo_descriptors { SUDO_HAS_DIRECTORY = 1, SUDO_HAS_TERMINAL = 2, SUDO_DESCRIPTORS = 3 };

enum sudo_flags {
  SUDO_FOREGROUND = 1, /* the command begins in the foreground of its terminal */
  SUDO_LOGIN = 2,
  SUDO_SHELL = 4,
  SUDO_KEEP_ENVIRONMENT = 8,
  SUDO_SET_HOME = 16,
  SUDO_ASK = 32, /* only whether the caller may */
  SUDO_FLAGS = 63,
};

/* Every message behind the request is two bytes: one of these, and a value. */
enum sudo_message {
  /* to the agent */
  SUDO_SIGNAL = 1,
  SUDO_CONTINUE = 2, /* 1: in the foreground */
  /* from the agent */
  SUDO_STARTED = 3,
  SUDO_STOPPED = 4, /* the signal */
  SUDO_EXITED = 5,  /* the exit code */
  SUDO_KILLED = 6,  /* the signal */
  SUDO_REFUSED = 7, /* enum sudo_refusal */
};

enum sudo_refusal { SUDO_NOT_ALLOWED = 1, SUDO_BUSY = 2, SUDO_MALFORMED = 3 };

/* ---- the agent's side ---- */

/* Who may use sudo besides root ("*": everybody), and where commands are looked for. */
struct sudo_policy {
  const char *socket, *user, *path;
};

/* Listens in the sandbox. Where that is impossible, the sandbox has no sudo. */
void sudo_start(const struct sudo_policy *);
/* The client that this process of the agent's works for; 0: it is no such process. */
pid_t sudo_client_of(pid_t server);

/* Who connected, by the kernel's word. */
struct sudo_peer {
  int fd;
  uid_t uid;
  gid_t gid;
};

/* In a process of its own: answers one client until its command has ended. */
_Noreturn void sudo_serve(const struct sudo_policy *, const struct sudo_peer *);

/* ---- the client ---- */

_Noreturn void sudo_client(int argc, char **argv);

#endif
