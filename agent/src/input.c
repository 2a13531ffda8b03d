/*
 * INPUT, CLOSE_INPUT, RESIZE, SIGNAL: act on a running job. OK is sent when the job's pipe or terminal has accepted every byte.
 * Until then, later inputs for the job wait in a queue.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "job.h"
#include "operations.h"
#include "terminal.h"

#define SIGNAL_MAX 64

struct input_wait {
  struct job *job;
  struct connection *connection;
  uint8_t *body, *bytes;
  size_t body_size;
  uint32_t left;
  bool closes;
  struct input_wait *next;
};

static void answer(struct connection *connection) {
  connection_send(connection, KIND_OK, NULL, 0);
  connection_end(connection);
}

static void unlink_wait(struct input_wait *wait) {
  for (struct input_wait **link = &wait->job->inputs; *link; link = &(*link)->next)
    if (*link == wait) {
      *link = wait->next;
      break;
    }
}

/* Takes a request out of the queue and frees it. Returns its connection, which is still open. */
static struct connection *finish(struct input_wait *wait) {
  struct connection *connection = wait->connection;
  unlink_wait(wait);
  request_free(wait->body, wait->body_size);
  connection->operation = NULL;
  connection->state = NULL;
  bury(wait);
  return connection;
}

void inputs_fail(struct job *job, int error_number) {
  while (job->inputs) connection_fail(finish(job->inputs), STAGE_JOB, error_number);
}

void inputs_continue(struct job *job) {
  while (job->inputs) {
    struct input_wait *wait = job->inputs;
    if (job->input.fd < 0) {
      inputs_fail(job, EPIPE);
      return;
    }
    ssize_t written = wait->left ? write(job->input.fd, wait->bytes, wait->left) : 0;
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      source_watch(&job->input, EPOLLOUT);
      return;
    }
    if (written < 0) {
      source_close(&job->input);
      continue;
    }
    wait->bytes += written;
    wait->left -= (uint32_t)written;
    if (wait->left) continue;
    if (wait->closes) source_close(&job->input);
    answer(finish(wait));
  }
  source_watch(&job->input, 0);
}

static void on_closed(struct connection *connection) {
  struct input_wait *wait = connection->state;
  unlink_wait(wait);
  request_free(wait->body, wait->body_size);
  bury(wait);
}

static const struct operation input_operation = {.closed = on_closed};

static void enqueue(struct connection *connection, struct job *job, uint8_t *bytes, uint32_t size, bool closes) {
  struct input_wait *wait = calloc(1, sizeof *wait);
  if (!wait) {
    connection_fail(connection, STAGE_BUSY, ENOMEM);
    return;
  }
  wait->job = job;
  wait->connection = connection;
  wait->bytes = bytes;
  wait->left = size;
  wait->closes = closes;
  wait->body = connection_keep_body(connection, &wait->body_size);
  connection->operation = &input_operation;
  connection->state = wait;
  struct input_wait **link = &job->inputs;
  while (*link) link = &(*link)->next;
  *link = wait;
  inputs_continue(job);
}

void input_start(struct connection *connection, struct fields *request) {
  char *id = take_string(request);
  uint32_t size;
  uint8_t *bytes = take_bytes(request, &size);
  if (!fields_complete(request)) {
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  struct job *job = job_named(connection, id);
  if (!job) return;
  if (job->state == JOB_ENDED) connection_fail(connection, STAGE_JOB, ESRCH);
  else enqueue(connection, job, bytes, size, false);
}

void close_input_start(struct connection *connection, struct fields *request) {
  char *id = take_string(request);
  if (!fields_complete(request)) {
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  struct job *job = job_named(connection, id);
  if (!job) return;
  if (job->is_terminal) connection_fail(connection, STAGE_JOB, ENOTTY); /* a terminal's input ends by a character (Ctrl-D) */
  else if (job->state == JOB_ENDED) connection_fail(connection, STAGE_JOB, ESRCH);
  else enqueue(connection, job, NULL, 0, true);
}

void resize_start(struct connection *connection, struct fields *request) {
  char *id = take_string(request);
  uint16_t cols = take_u16(request), rows = take_u16(request);
  if (!fields_complete(request) || !cols || !rows) {
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  struct job *job = job_named(connection, id);
  if (!job) return;
  if (!job->is_terminal) connection_fail(connection, STAGE_JOB, ENOTTY);
  else if (job->output[0].fd < 0 || job->state == JOB_ENDED) connection_fail(connection, STAGE_JOB, ESRCH);
  else if (!terminal_resize(job->output[0].fd, cols, rows)) connection_fail(connection, STAGE_JOB, errno);
  else {
    job->cols = cols;
    job->rows = rows;
    answer(connection);
  }
}

void signal_start(struct connection *connection, struct fields *request) {
  char *id = take_string(request);
  uint8_t number = take_u8(request);
  if (!fields_complete(request) || number < 1 || number > SIGNAL_MAX) {
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  struct job *job = job_named(connection, id);
  if (!job) return;
  if (child_signal_group(&job->child, job->group, number)) answer(connection);
  else connection_fail(connection, STAGE_JOB, ESRCH);
}
