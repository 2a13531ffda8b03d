/*
 * Handles the end of every process in the sandbox, because PID 1 is the parent of all orphans. If the agent has started the
 * process, calls its `ended` function.
 */
#ifndef ALCOVE_REAPER_H
#define ALCOVE_REAPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
  pid_t pid; /* 0 once the process was reaped or forgotten */
  bool group_left; /* other processes of the group still existed when this process ended */
  void (*ended)(struct child *, int status);
  struct child *next;
};

/* Starts the reaper. After this call, SIGCHLD and the signals that end the agent arrive as events of the loop. */
void reaper_start(void);
/* Calls `ended` when this child process of the agent has ended. */
void reaper_expect(struct child *, pid_t, void (*ended)(struct child *, int status));
/* Undoes `reaper_expect`: the process is still reaped, but `ended` is not called. */
void reaper_forget(struct child *);
/* Returns true if `reaper_expect` was called for the process that has this pid. */
bool reaper_knows(pid_t);
/* Reaps all dead processes. Returns true if no child is left at all. */
bool reaper_reap(void);

/* Makes an EXIT payload: u8 how (0 exited, 1 killed by a signal), u32 code or signal. */
void exit_payload(uint8_t payload[5], int status);
/* Signals the process group whose leader is or was the child. Returns false if the group has no member. */
bool child_signal_group(struct child *, pid_t group, int signal_number);

#endif
