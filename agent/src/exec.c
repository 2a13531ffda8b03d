/*
 * The frame EXEC runs one command. If the connection closes before the agent sends EXIT, the agent kills the command's process
 * group. The agent reads output only as fast as the peer receives it. The agent's frames CREDIT say how many bytes of input the
 * peer may send.
 *
 * After the first process ends, the agent sends what is left in the pipes, then EXIT. Background children continue to run.
 *
 * Most commands end after a few milliseconds, so each wake-up is a large part of their cost:
 * - The agent itself keeps a writing end of each output pipe open. Otherwise each pipe would also report its end, and wake the
 *   agent again.
 * - If the peer sends no input, the agent delays the frame OK by at most three milliseconds. If output or EXIT comes in this time,
 *   the agent sends it together with OK. So the peer wakes up only once.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "launch.h"
#include "operations.h"
#include "reaper.h"
#include "sink.h"

#define CREDIT_STEP 65536u
#define SIGNAL_MAX 64
#define OK_WAITS_MILLISECONDS 3

struct command {
  struct connection *connection;
  struct child child;
  pid_t group;
  struct source report, input, output[2]; /* output: standard output, standard error */
  int kept[2];                            /* the agent's own writing ends of the output pipes */
  struct timer silence;                   /* when it fires, the OK frame is sent, even if no other frame is ready */
  uint8_t *pending;                       /* input that the command has not read yet, at most INPUT_WINDOW */
  uint32_t pending_start, pending_end;
  uint32_t window_used, credit_owed; /* bytes of input: without new credit for the peer yet; of these, read by the command */
  bool started, input_ended, exited, told;
  int status;
  uint32_t left[2]; /* after the exit: how many bytes from before the exit are still in the pipe */
};

static bool is_alive(const struct command *command) { return command->connection->socket.fd >= 0; }

static void close_kept(struct command *command) {
  for (int i = 0; i < 2; i++) {
    if (command->kept[i] >= 0) close(command->kept[i]);
    command->kept[i] = -1;
  }
}

/* ---- reading the report of the new process, which says whether the program runs ---- */

static void watch_report(struct timer *silence) {
  source_watch(&owner_of(silence, struct command, silence)->report, EPOLLIN);
}

/*
 * Reads whether the program runs, and sends OK or FAILED to the peer. `more_follows`: OK waits for the next frame of the calling
 * function, so that both are sent at once.
 */
static void hear_report(struct command *command, bool more_follows) {
  uint8_t payload[5];
  ssize_t got = read(command->report.fd, payload, sizeof payload);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    source_watch(&command->report, EPOLLIN);
    return;
  }
  source_close(&command->report);
  timer_clear(&command->silence);
  if (got == (ssize_t)sizeof payload) {
    command->told = true;
    for (int i = 0; i < 2; i++) source_watch(&command->output[i], 0);
    connection_fail(command->connection, payload[0], (int)get_u32(payload + 1));
    return;
  }
  command->started = true;
  put_u32(payload, (uint32_t)command->group);
  (more_follows ? connection_hold : connection_send)(command->connection, KIND_OK, payload, 4);
}

/* ---- output of the command ---- */

static void finish(struct command *command) {
  uint8_t payload[5];
  exit_payload(payload, command->status);
  command->told = true;
  close_kept(command);
  for (int i = 0; i < 2; i++) sink_take(source_release(&command->output[i]));
  connection_send(command->connection, KIND_EXIT, payload, sizeof payload);
  connection_end(command->connection);
}

/* Reads one chunk of output directly into the frame that sends it. */
static void forward(struct command *command, int which, uint32_t at_most) {
  struct source *pipe = &command->output[which];
  ssize_t got = read(pipe->fd, connection_chunk(command->connection), at_most < CHUNK ? at_most : CHUNK);
  if (got < 0 && errno == EINTR) return;
  if (got < 0 && errno == EAGAIN) {
    command->left[which] = 0;
    return;
  }
  if (got <= 0) {
    source_close(pipe);
    command->left[which] = 0;
    return;
  }
  if (command->exited) command->left[which] -= (uint32_t)got;
  connection_send_chunk(command->connection, which == 0 ? KIND_STDOUT : KIND_STDERR, (uint32_t)got);
}

/* Sends output until the peer accepts no more. */
static void pump(struct command *command) {
  if (!command->started || command->told) return;
  while (command->exited && connection_is_drained(command->connection)) {
    int which = command->left[0] ? 0 : 1;
    if (!command->left[which]) {
      finish(command);
      return;
    }
    forward(command, which, command->left[which]);
  }
  if (!is_alive(command)) return;
  uint32_t wanted = !command->exited && connection_is_drained(command->connection) ? EPOLLIN : 0;
  for (int i = 0; i < 2; i++) source_watch(&command->output[i], wanted);
}

static void on_output(struct command *command, int which) {
  if (!command->started) hear_report(command, true);
  if (!command->started) source_watch(&command->output[which], 0);
  else if (connection_is_drained(command->connection)) forward(command, which, CHUNK);
  if (is_alive(command)) pump(command);
  if (!command->told) connection_flush(command->connection);
}

static void on_stdout(struct source *source, uint32_t events) {
  (void)events;
  on_output(owner_of(source, struct command, output[0]), 0);
}

static void on_stderr(struct source *source, uint32_t events) {
  (void)events;
  on_output(owner_of(source, struct command, output[1]), 1);
}

/* ---- input for the command ---- */

static void give_credit(struct command *command, uint32_t taken) {
  command->credit_owed += taken;
  if (command->credit_owed < CREDIT_STEP) return;
  uint8_t payload[4];
  put_u32(payload, command->credit_owed);
  command->window_used -= command->credit_owed;
  command->credit_owed = 0;
  connection_send(command->connection, KIND_CREDIT, payload, sizeof payload);
}

static void drop_pending(struct command *command) {
  free(command->pending);
  command->pending = NULL;
  command->pending_start = command->pending_end = 0;
}

/* Returns how many bytes were written. If the command has closed its input, all bytes are dropped, but count as written. */
static uint32_t write_input(struct command *command, const uint8_t *bytes, uint32_t size) {
  if (command->input.fd < 0) return size;
  ssize_t written = write(command->input.fd, bytes, size);
  if (written >= 0) return (uint32_t)written;
  if (errno == EAGAIN || errno == EINTR) return 0;
  source_close(&command->input);
  return size;
}

static void close_input_if_done(struct command *command) {
  if (command->pending_start < command->pending_end) {
    source_watch(&command->input, EPOLLOUT);
    return;
  }
  drop_pending(command);
  source_watch(&command->input, 0);
  if (command->input_ended) source_close(&command->input);
}

static void on_input_room(struct source *source, uint32_t events) {
  (void)events;
  struct command *command = owner_of(source, struct command, input);
  uint32_t taken = write_input(command, command->pending + command->pending_start,
                               command->pending_end - command->pending_start);
  command->pending_start += taken;
  close_input_if_done(command);
  give_credit(command, taken);
}

static bool take_input(struct command *command, const uint8_t *bytes, uint32_t size) {
  if (command->input_ended || size > INPUT_WINDOW - command->window_used) return false;
  command->window_used += size;
  uint32_t taken = command->pending ? 0 : write_input(command, bytes, size);
  if (taken < size) {
    if (!command->pending) command->pending = malloc(INPUT_WINDOW);
    if (!command->pending) return false;
    uint32_t waiting = command->pending_end - command->pending_start;
    memmove(command->pending, command->pending + command->pending_start, waiting);
    memcpy(command->pending + waiting, bytes + taken, size - taken);
    command->pending_start = 0;
    command->pending_end = waiting + size - taken;
  }
  close_input_if_done(command);
  give_credit(command, taken);
  return true;
}

/* ---- events: the command runs, or has ended ---- */

static void on_report(struct source *source, uint32_t events) {
  (void)events;
  struct command *command = owner_of(source, struct command, report);
  hear_report(command, false);
  if (is_alive(command)) pump(command);
}

static void on_ended(struct child *child, int status) {
  struct command *command = owner_of(child, struct command, child);
  if (!command->started && !command->told) hear_report(command, true);
  if (!is_alive(command) || command->told) return;
  command->exited = true;
  command->status = status;
  source_close(&command->input);
  drop_pending(command);
  for (int i = 0; i < 2; i++) {
    int waiting = 0;
    if (command->output[i].fd >= 0 && ioctl(command->output[i].fd, FIONREAD, &waiting) == 0 && waiting > 0)
      command->left[i] = (uint32_t)waiting;
  }
  pump(command);
  if (!command->told) connection_flush(command->connection);
}

static bool on_frame(struct connection *connection, uint8_t kind, uint8_t *payload, uint32_t size) {
  struct command *command = connection->state;
  if (kind == KIND_STDIN) return take_input(command, payload, size);
  if (kind == KIND_STDIN_END && size == 0 && !command->input_ended) {
    command->input_ended = true;
    close_input_if_done(command);
    return true;
  }
  if (kind == KIND_KILL && size == 1 && payload[0] >= 1 && payload[0] <= SIGNAL_MAX) {
    child_signal_group(&command->child, command->group, payload[0]);
    return true;
  }
  return false;
}

static void on_drained(struct connection *connection) { pump(connection->state); }

static void on_closed(struct connection *connection) {
  struct command *command = connection->state;
  if (!command->told) child_signal_group(&command->child, command->group, SIGKILL);
  reaper_forget(&command->child);
  timer_clear(&command->silence);
  close_kept(command);
  source_close(&command->report);
  source_close(&command->input);
  for (int i = 0; i < 2; i++) source_close(&command->output[i]);
  drop_pending(command);
  bury(command);
}

static const struct operation exec_operation = {.frame = on_frame, .drained = on_drained, .closed = on_closed};

/* ---- starting the command ---- */

static void run(struct connection *connection, const struct program *program, uint8_t flags) {
  int ours[3] = {-1, -1, -1}, theirs[3] = {-1, -1, -1}, report = -1;
  struct command *command = calloc(1, sizeof *command);
  pid_t pid = command && streams_open(flags & EXEC_MERGE_OUTPUT, ours, theirs) ? launch(program, theirs, false, &report) : -1;
  int reason = errno;
  if (pid < 0) {
    streams_close(theirs);
    streams_close(ours);
    free(command);
    connection_fail(connection, STAGE_SYSTEM, reason);
    return;
  }
  command->connection = connection;
  command->group = pid;
  command->input_ended = !(flags & EXEC_HAS_STDIN);
  close(theirs[0]);
  command->kept[0] = theirs[1];
  command->kept[1] = flags & EXEC_MERGE_OUTPUT ? -1 : theirs[2];
  if (flags & EXEC_MERGE_OUTPUT) close(theirs[2]);
  reaper_expect(&command->child, pid, on_ended);
  source_open(&command->input, ours[0], on_input_room);
  source_open(&command->output[0], ours[1], on_stdout);
  source_open(&command->output[1], ours[2], on_stderr);
  source_open(&command->report, report, on_report);
  for (int i = 0; i < 2; i++) source_watch(&command->output[i], EPOLLIN);
  if (command->input_ended) timer_set(&command->silence, OK_WAITS_MILLISECONDS, watch_report);
  else source_watch(&command->report, EPOLLIN);
  connection->operation = &exec_operation;
  connection->state = command;
  close_input_if_done(command);
}

void exec_start(struct connection *connection, struct fields *request) {
  uint8_t flags = take_u8(request);
  struct program program;
  if (!program_take(&program, request) || !fields_complete(request) || flags > 3) {
    program_free(&program);
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  run(connection, &program, flags);
  program_free(&program);
}
