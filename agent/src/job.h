/*
 * A job is a process that outlives its connection, the gate and the runner. A ring on disk (ring.h) stores the job's output until
 * the job is removed.
 */
#ifndef ALCOVE_JOB_H
#define ALCOVE_JOB_H

#include "connection.h"
#include "reaper.h"
#include "record.h"

struct input_wait;

/* A connection that waits until a job is removed. */
struct remove_wait {
  struct connection *connection;
  struct remove_wait *next;
};

struct job {
  char id[JOB_ID_MAX + 1];
  uint64_t serial, created_at, ended_at; /* milliseconds since 1970 */
  bool is_terminal, keeps_failed, input_closing, removing, unlisted;
  uint16_t cols, rows;
  uint8_t state;
  int status;
  struct child child;
  pid_t group;
  struct source report, input, output[2]; /* a terminal's master is output[0] and also input */
  struct record record;
  uint8_t *metadata;
  uint32_t metadata_size;
  struct connection *spawner; /* the connection that waits for the report whether the program runs */
  struct input_wait *inputs;
  struct remove_wait *removers;
  struct job *next;
};

/* All jobs, as a linked list in the order of their start. */
extern struct job *jobs;

struct job *job_find(const char *id);
/* Finds the job with this id. If no job has the id, sends FAILED with ENOENT on the connection and returns NULL. */
struct job *job_named(struct connection *, const char *id);

/* Whether an id is valid: 1 to JOB_ID_MAX printable ASCII characters without space. */
bool job_may_be_called(const char *id);
bool jobs_are_full(void);
/* Sends SIGHUP to the shells of all terminals, as when a terminal is closed, because interactive shells ignore SIGTERM. */
void jobs_hang_up(void);
void job_enlist(struct job *);
/* Makes the job the owner of a started process and of its descriptors (see launch.h), and starts watching them. */
void job_started(struct job *, pid_t, uint32_t ring_bytes, bool keeps_beginning, const int ours[3], int report);

/*
 * Handles the queued input of callers (input.c). Call `inputs_continue` when the job's standard input accepts bytes again, and
 * `inputs_fail` when standard input is closed for ever.
 */
void inputs_continue(struct job *);
void inputs_fail(struct job *, int error_number);
/* Answers the requests to remove the job (remove.c), and frees the job. Called when the job's first process has been reaped. */
void removers_continue(struct job *);

/* Frees a job that was removed from the list `jobs`. Does nothing while a connection still follows the job. */
void job_release(struct job *);

#endif
