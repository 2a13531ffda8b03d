/*
 * Sessions: shells that keep their state from one command to the next, each with a queue of commands of which one runs
 * at a time. A command has pipes, and a record, of its own; what it leaves in the background keeps writing there.
 */
#ifndef ALCOVE_SESSION_H
#define ALCOVE_SESSION_H

#include "descendants.h"
#include "meeting.h"
#include "reaper.h"
#include "record.h"

struct session;

struct session_command {
  struct session *session;
  char id[JOB_ID_MAX + 1];
  uint64_t serial, created_at, ended_at; /* milliseconds since 1970 */
  uint8_t state, flags;
  bool is_wide[2]; /* that pipe has been made larger */
  uint8_t *text; /* NULL: it lies in the session's file */
  uint32_t text_size;
  struct record record;
  struct source output[2], input;
  struct timer pace; /* set while nothing is read, for the sake of who follows */
  int held[3]; /* the sandbox's ends of them all, until the command has ended */
  char meetings[3][MEETING_PATH];
  uint8_t *pending; /* input that was not taken yet */
  uint32_t pending_start, pending_end;
  bool input_closing;
  struct session_command *next;
};

/* A connection that waits until a session is gone. */
struct session_removal {
  struct connection *connection; /* NULL: it has gone itself */
  struct timer timer;
  uint64_t kill_at, give_up_at;
  struct process_mark *tree;
  size_t tree_size;
};

struct session {
  char *id;
  uint64_t serial, created_at, last_command;
  uint8_t state, flags; /* state: enum job_state */
  int status;
  struct child child;
  pid_t group;
  struct source report, lines, answers;
  uint8_t *line; /* what is being written to the shell */
  size_t line_at, line_size;
  char answer[64];
  size_t answer_size;
  int file; /* the records of all commands, and long texts; -1 until there is something */
  uint32_t ring_bytes;
  struct session_command *commands, *running;
  unsigned command_count, waiting_count;
  size_t waiting_bytes;
  struct connection *opener; /* waits to hear whether it runs */
  struct session_removal removal;
  bool unlisted, settled; /* settled: the shell has ended, and everybody was told */
  struct session *next;
};

/* In the order in which they were opened. */
extern struct session *sessions;

struct session *session_find(const char *id);
/* Finds a session; NULL: the connection has been told that there is none. */
struct session *session_named(struct connection *, const char *id);
bool sessions_are_full(void);
void session_enlist(struct session *);
/* Takes over the process and its descriptors and listens to them from now on. */
void session_started(struct session *, pid_t, int lines, int answers, int report);
/* Takes it off the list, so that its id is free. */
void session_unlist(struct session *);
/* Frees one that is off the list and has ended, once nobody follows one of its commands. */
void session_release(struct session *);
/* Where in the shell it answers how a command has ended. */
int session_answer_fd(const struct session *);
/* Writes to the shell as soon as it takes it; the buffer is freed then. False: no memory. */
bool session_say(struct session *, uint8_t *line, size_t size);

/* session_command.c */
struct session_command *session_command_find(const struct session *, const char *id);
/* NULL: errno. ENOBUFS: so much waits already that no more is taken. */
struct session_command *session_command_add(struct session *, const char *id, uint8_t flags, const uint8_t *text,
                                            uint32_t size);
/* Starts the next one if none runs. */
void session_continue(struct session *);
/* The running one has ended; or, with NEVER_RAN, all that wait. */
void session_command_ended(struct session_command *, uint8_t how, uint32_t code);
void session_commands_never_run(struct session *);
/* What the command takes of it waits in a pipe, then here. False: more than that. */
bool session_command_input(struct session_command *, const uint8_t *bytes, uint32_t size, bool closes);
void session_command_close(struct session_command *);
void session_command_free(struct session_command *);
/* A copy to be freed, of `text_size` bytes; NULL: errno. */
uint8_t *session_command_text(const struct session_command *);

/* session_memory.c: keeps what is left of ended commands within its bounds. */
void session_forget_old(struct session *);
void session_command_settle_text(struct session_command *);

/* session_remove.c: the shell has been reaped. */
void session_removal_continue(struct session *);

#endif
