/*
 * Sessions: shells that keep their state between commands. Commands wait in a queue, and one runs at a time. Each has its own pipes
 * and stored output (record.h). Background processes keep writing to the pipes of their command.
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
  bool is_wide[2]; /* whether the output pipe with this index was enlarged */
  uint8_t *text; /* NULL: the text is in the session's file */
  uint32_t text_size;
  struct record record;
  struct source output[2], input;
  struct timer pace; /* set while the agent pauses reading, so that followers can catch up */
  int held[3]; /* the sandbox's ends of the command's pipes, until the command has ended */
  char meetings[3][MEETING_PATH];
  uint8_t *pending; /* input that the command has not taken yet */
  uint32_t pending_start, pending_end;
  bool input_closing;
  struct session_command *next;
};

/* The state of a request to remove a session. `connection` waits until the session is removed. */
struct session_removal {
  struct connection *connection; /* NULL: the connection has closed */
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
  uint8_t *line; /* the line that is being written to the shell */
  size_t line_at, line_size;
  char answer[64];
  size_t answer_size;
  int file; /* holds the records of all commands, and long texts; -1 until needed */
  uint32_t ring_bytes;
  struct session_command *commands, *running;
  unsigned command_count, waiting_count;
  size_t waiting_bytes;
  struct connection *opener; /* the connection that waits for the report whether the shell runs */
  struct session_removal removal;
  bool unlisted, settled; /* settled: the shell has ended, and all connections that waited for its end have an answer */
  struct session *next;
};

/* List of all sessions, in the order in which they were opened. */
extern struct session *sessions;

struct session *session_find(const char *id);
/* Finds the session with this id. If no session has the id, sends FAILED with ENOENT on the connection and returns NULL. */
struct session *session_named(struct connection *, const char *id);
bool sessions_are_full(void);
void session_enlist(struct session *);
/*
 * Makes the session the owner of a started shell and of three descriptors, and starts watching them. The agent writes commands to
 * `lines`. It reads from `answers` which commands have ended, and from `report` whether the shell runs.
 */
void session_started(struct session *, pid_t, int lines, int answers, int report);
/* Removes the session from the list, so that its id is free again. */
void session_unlist(struct session *);
/* Frees an ended session that was removed from the list. Does nothing while a connection still follows one of its commands. */
void session_release(struct session *);
/* The shell's descriptor on which it reports the end of a command. */
int session_answer_fd(const struct session *);
/* Queues a line for the shell, and takes over the buffer. Returns false if out of memory. */
bool session_say(struct session *, uint8_t *line, size_t size);

/* The functions from here to `session_command_text` are in session_command.c. */
struct session_command *session_command_find(const struct session *, const char *id);
/* Queues a command. Returns NULL with errno. ENOBUFS: too much is queued already. */
struct session_command *session_command_add(struct session *, const char *id, uint8_t flags, const uint8_t *text,
                                            uint32_t size);
/* Starts the next command if none runs. */
void session_continue(struct session *);
/*
 * `session_command_ended` records the end of the running command. `session_commands_never_run` ends all queued commands with the
 * status NEVER_RAN.
 */
void session_command_ended(struct session_command *, uint8_t how, uint32_t code);
void session_commands_never_run(struct session *);
/* Passes input to the command's pipe, and queues in memory what does not fit. Returns false if too much is queued. */
bool session_command_input(struct session_command *, const uint8_t *bytes, uint32_t size, bool closes);
void session_command_close(struct session_command *);
void session_command_free(struct session_command *);
/*
 * Returns a copy of the command's text, which has `text_size` bytes. The caller frees the copy. Returns NULL with errno on
 * failure.
 */
uint8_t *session_command_text(const struct session_command *);

/* Keeps the records of ended commands within their limits (session_memory.c). */
void session_forget_old(struct session *);
void session_command_settle_text(struct session_command *);

/* Continues the removal of the session (session_remove.c). Called when the shell has been reaped. */
void session_removal_continue(struct session *);

#endif
