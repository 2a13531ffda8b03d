/*
 * The end of every process in the sandbox. As PID 1 the agent is the parent of all orphans; those that it started
 * itself have someone who wants to know.
 */
#ifndef ALCOVE_REAPER_H
#define ALCOVE_REAPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
  pid_t pid; /* 0 once it was reaped or forgotten */
  bool group_left; /* when it ended, other processes of its group were still there */
  void (*ended)(struct child *, int status);
  struct child *next;
};

/* SIGCHLD and the signals that ask the agent to end arrive as events from here on. */
void reaper_start(void);
void reaper_expect(struct child *, pid_t, void (*ended)(struct child *, int status));
/* The process is still reaped, but nobody is told. */
void reaper_forget(struct child *);
/* True while a process with this number is expected by somebody. */
bool reaper_knows(pid_t);
/* Reaps everybody who is dead now. True when no child is left at all. */
bool reaper_reap(void);

/* An EXIT payload: u8 how (0 exited, 1 killed by a signal), u32 code or signal. */
void exit_payload(uint8_t payload[5], int status);
/* A signal to the whole process group that this child leads, also after it ended. False: nobody of it is left. */
bool child_signal_group(struct child *, pid_t group, int signal_number);

#endif
