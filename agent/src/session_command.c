/*
 * The life of a command: it is queued, then handed to the shell with its own pipes. It ends when the shell reports the command's
 * end, or when the shell ends. Later output comes from background processes, and is still stored.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "pages.h"
#include "session.h"
#include "wire.h"

#define WAITING_MAX 1000
#define WAITING_BYTES_MAX (16u * 1024u * 1024u)
#define INPUT_MAX (1024u * 1024u)
#define WRAPPING_MAX 512u
#define PACE_MILLISECONDS 1u

struct session_command *session_command_find(const struct session *session, const char *id) {
  for (struct session_command *command = session->commands; command; command = command->next)
    if (strcmp(command->id, id) == 0) return command;
  return NULL;
}

/* ---- output of commands ---- */

/*
 * Frees memory that only output needs: the ring's mapping and the agent's pipes (pages.h). Call this when no more output is
 * expected.
 */
static void rest(struct session_command *command) {
  ring_rest(&command->record.ring);
  if (command->is_wide[0] || command->is_wide[1]) pages_drop();
}

static bool collect(struct session_command *command, int which, size_t at_most) {
  struct source *source = &command->output[which];
  enum origin origin = which == 0 ? FROM_STDOUT : FROM_STDERR;
  ssize_t got = command->is_wide[which] ? record_take(&command->record, origin, source->fd, at_most)
                                        : ring_take(&command->record.ring, origin, source->fd, at_most);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got >= (ssize_t)CHUNK && !command->is_wide[which]) {
    /* The output filled the pipe, so make the pipe larger. Then the command and the agent wait for each other less often. */
    command->is_wide[which] = true;
    fcntl(source->fd, F_SETPIPE_SZ, LONG_CHUNK);
  }
  if (got > 0) return true;
  source_close(source);
  if (command->output[0].fd < 0 && command->output[1].fd < 0) rest(command);
  return false;
}

static void go_on(struct timer *timer) {
  struct session_command *command = owner_of(timer, struct session_command, pace);
  for (int i = 0; i < 2; i++)
    if (command->output[i].fd >= 0) source_watch(&command->output[i], EPOLLIN);
}

static void on_eased(struct record *record) {
  struct session_command *command = owner_of(record, struct session_command, record);
  if (!command->pace.at) return;
  timer_clear(&command->pace);
  go_on(&command->pace);
}

/*
 * Slows down a command while a follower reads too slowly, so that new output does not overwrite unread output. The command can
 * still write tens of megabytes per second.
 */
static void pace(struct session_command *command, uint64_t size) {
  if (!record_is_pressed(&command->record)) return;
  for (int i = 0; i < 2; i++)
    if (command->output[i].fd >= 0) source_watch(&command->output[i], 0);
  timer_set(&command->pace, PACE_MILLISECONDS * ((size + CHUNK - 1) / CHUNK), go_on);
}

static void hear(struct session_command *command, int which) {
  uint64_t before = command->record.ring.end;
  if (!collect(command, which, LONG_CHUNK)) return;
  record_wake(&command->record);
  pace(command, command->record.ring.end - before);
}

static void on_stdout(struct source *source, uint32_t events) {
  (void)events;
  hear(owner_of(source, struct session_command, output[0]), 0);
}

static void on_stderr(struct source *source, uint32_t events) {
  (void)events;
  hear(owner_of(source, struct session_command, output[1]), 1);
}

/*
 * Collects the output that is in the pipe at the command's end, and no later output, because background processes may write
 * forever.
 */
static void collect_last(struct session_command *command, int which) {
  int waiting = 0;
  if (command->output[which].fd < 0 || ioctl(command->output[which].fd, FIONREAD, &waiting) < 0) return;
  for (uint64_t until = command->record.ring.end + (uint64_t)waiting;
       command->output[which].fd >= 0 && command->record.ring.end < until;)
    if (!collect(command, which, (size_t)(until - command->record.ring.end))) return;
}

static void explain(struct session_command *command, const char *text) {
  ring_append(&command->record.ring, FROM_STDERR, (const uint8_t *)text, strlen(text));
}

/* ---- input for commands ---- */

static void drop_pending(struct session_command *command) {
  free(command->pending);
  command->pending = NULL;
  command->pending_start = command->pending_end = 0;
}

static void feed(struct session_command *command) {
  while (command->input.fd >= 0 && command->pending_start < command->pending_end) {
    ssize_t written = write(command->input.fd, command->pending + command->pending_start,
                            command->pending_end - command->pending_start);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      source_watch(&command->input, EPOLLOUT);
      return;
    }
    if (written < 0) break;
    command->pending_start += (uint32_t)written;
  }
  if (command->input.fd < 0) return;
  drop_pending(command);
  source_watch(&command->input, 0);
  if (command->input_closing) source_close(&command->input);
}

static void on_input_room(struct source *source, uint32_t events) {
  (void)events;
  feed(owner_of(source, struct session_command, input));
}

bool session_command_input(struct session_command *command, const uint8_t *bytes, uint32_t size, bool closes) {
  uint32_t waiting = command->pending_end - command->pending_start;
  if (size > INPUT_MAX - waiting) return false;
  if (size > 0) {
    uint8_t *pending = malloc(waiting + size);
    if (!pending) return false;
    if (waiting) memcpy(pending, command->pending + command->pending_start, waiting);
    memcpy(pending + waiting, bytes, size);
    free(command->pending);
    command->pending = pending;
    command->pending_start = 0;
    command->pending_end = waiting + size;
  }
  command->input_closing |= closes;
  if (size > 0 && command->flags & COMMAND_ECHO_INPUT) ring_append(&command->record.ring, FROM_STDOUT, bytes, size);
  feed(command);
  record_wake(&command->record);
  return true;
}

/* ---- start and end of commands ---- */

static void on_left(struct record *record) {
  session_release(owner_of(record, struct session_command, record)->session);
}

struct session_command *session_command_add(struct session *session, const char *id, uint8_t flags,
                                            const uint8_t *text, uint32_t size) {
  if (session->waiting_count >= WAITING_MAX || session->waiting_bytes + size > WAITING_BYTES_MAX) {
    errno = ENOBUFS;
    return NULL;
  }
  struct session_command *command = calloc(1, sizeof *command);
  uint8_t *copy = malloc(size + 1);
  if (!command || !copy) {
    free(command);
    free(copy);
    errno = ENOMEM;
    return NULL;
  }
  memcpy(copy, text, size);
  memcpy(command->id, id, strlen(id) + 1);
  command->session = session;
  command->text = copy;
  command->text_size = size;
  command->flags = flags;
  command->serial = ++session->last_command;
  command->created_at = wall_milliseconds();
  command->held[0] = command->held[1] = command->held[2] = -1;
  source_open(&command->output[0], -1, on_stdout);
  source_open(&command->output[1], -1, on_stderr);
  source_open(&command->input, -1, on_input_room);
  ring_open_in(&command->record.ring, &session->file, command->serial * ((uint64_t)session->ring_bytes + COMMAND_TEXT_MAX),
               session->ring_bytes);
  record_start(&command->record, on_left);
  command->record.eased = on_eased;
  struct session_command **link = &session->commands;
  while (*link) link = &(*link)->next;
  *link = command;
  session->command_count++;
  session->waiting_count++;
  session->waiting_bytes += size;
  return command;
}

static bool open_meetings(struct session_command *command) {
  int reading, writing;
  for (int i = 0; i < 2; i++) {
    if (!meeting_open(command->meetings[i], SANDBOX_WRITES, &reading, &command->held[i])) return false;
    source_open(&command->output[i], reading, i == 0 ? on_stdout : on_stderr);
    source_watch(&command->output[i], EPOLLIN);
  }
  if (!(command->flags & COMMAND_KEEP_INPUT)) return true;
  if (!meeting_open(command->meetings[2], SANDBOX_READS, &command->held[2], &writing)) return false;
  source_open(&command->input, writing, on_input_room);
  return true;
}

static uint8_t *append(uint8_t *at, const void *bytes, size_t size) {
  memcpy(at, bytes, size);
  return at + size;
}

/*
 * Makes the text for the shell. The command is quoted for the builtin `eval`, so that an unclosed quote in it does not affect later
 * commands. `command eval` prevents an error from ending the shell. At the end, the shell reports the exit code.
 */
static uint8_t *wrap(const struct session_command *command, size_t *size) {
  const struct session *session = command->session;
  size_t quotes = 0;
  for (uint32_t i = 0; i < command->text_size; i++) quotes += command->text[i] == '\'';
  uint8_t *line = malloc(command->text_size + 3 * quotes + WRAPPING_MAX), *at = line;
  if (!line) return NULL;
  if (session->flags & SESSION_BASH) at = append(at, "LINENO=1\n", 9); /* error messages count only the text's lines */
  at = append(at, "command eval '", 14);
  for (uint32_t i = 0; i < command->text_size; i++) {
    if (command->text[i] == '\'') at = append(at, "'\\''", 4);
    else *at++ = command->text[i];
  }
  at += sprintf((char *)at, "' <%s >%s 2>%s %d>&-\ncommand printf '%%s %%s\\n' %llu \"$?\" >&%d\n",
                *command->meetings[2] ? command->meetings[2] : "/dev/null", command->meetings[0], command->meetings[1],
                session_answer_fd(session), (unsigned long long)command->serial, session_answer_fd(session));
  *size = (size_t)(at - line);
  return line;
}

static void start(struct session_command *command) {
  struct session *session = command->session;
  session->waiting_count--;
  session->waiting_bytes -= command->text_size;
  session->running = command;
  command->state = COMMAND_RUNNING;
  size_t size;
  uint8_t *line = open_meetings(command) ? wrap(command, &size) : NULL;
  if (!line) {
    char text[128];
    snprintf(text, sizeof text, "The command could not be started: %s.\n", strerror(errno));
    explain(command, text);
    session_command_ended(command, NEVER_RAN, 0);
    return;
  }
  feed(command);
  if (session_say(session, line, size)) return;
  session_command_ended(command, NEVER_RAN, 0);
}

void session_continue(struct session *session) {
  if (session->state != JOB_RUNNING) return;
  for (struct session_command *command = session->commands, *next; command && !session->running; command = next) {
    next = command->next;
    if (command->state == COMMAND_WAITING) start(command);
  }
}

void session_command_close(struct session_command *command) {
  for (int i = 0; i < 3; i++) {
    meeting_close(command->meetings[i]);
    *command->meetings[i] = 0;
    if (command->held[i] >= 0) close(command->held[i]);
    command->held[i] = -1;
  }
  source_close(&command->input);
  drop_pending(command);
}

void session_command_ended(struct session_command *command, uint8_t how, uint32_t code) {
  struct session *session = command->session;
  if (session->running == command) session->running = NULL;
  command->state = COMMAND_ENDED;
  command->ended_at = wall_milliseconds();
  for (int i = 0; i < 2; i++) collect_last(command, i);
  session_command_close(command);
  session_command_settle_text(command);
  uint8_t exit[5] = {how};
  put_u32(exit + 1, code);
  record_end(&command->record, exit);
  session_forget_old(session);
}

void session_commands_never_run(struct session *session) {
  for (struct session_command *command = session->commands; command; command = command->next) {
    if (command->state != COMMAND_WAITING) continue;
    session->waiting_count--;
    session->waiting_bytes -= command->text_size;
    explain(command, "The session ended before this command was started.\n");
    session_command_ended(command, NEVER_RAN, 0);
  }
}

void session_command_free(struct session_command *command) {
  session_command_close(command);
  timer_clear(&command->pace);
  for (int i = 0; i < 2; i++) source_close(&command->output[i]);
  rest(command);
  ring_close(&command->record.ring);
  free(command->text);
  bury(command);
}
