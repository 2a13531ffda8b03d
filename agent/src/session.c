/*
 * The list of sessions, and the functions that start and end their shells. A shell reads commands from standard input. It reports
 * the end of each command on a separate pipe, which the commands do not have open.
 */
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SESSIONS_MAX 256

struct session *sessions;
static unsigned session_count;
static uint64_t last_serial;

struct session *session_find(const char *id) {
  for (struct session *session = sessions; session; session = session->next)
    if (strcmp(session->id, id) == 0) return session;
  return NULL;
}

struct session *session_named(struct connection *connection, const char *id) {
  struct session *session = session_find(id);
  if (!session) connection_fail(connection, STAGE_JOB, ENOENT);
  return session;
}

bool sessions_are_full(void) { return session_count >= SESSIONS_MAX; }

void session_enlist(struct session *session) {
  struct session **link = &sessions;
  while (*link) link = &(*link)->next;
  *link = session;
  session_count++;
  session->serial = ++last_serial;
  session->created_at = wall_milliseconds();
}

void session_unlist(struct session *session) {
  for (struct session **link = &sessions; *link; link = &(*link)->next)
    if (*link == session) {
      *link = session->next;
      break;
    }
  session->unlisted = true;
}

void session_release(struct session *session) {
  if (!session->unlisted || !session->settled || session->removal.timer.at) return;
  for (struct session_command *command = session->commands; command; command = command->next)
    if (command->record.followers) return;
  session_count--;
  while (session->commands) {
    struct session_command *command = session->commands;
    session->commands = command->next;
    session_command_free(command);
  }
  source_close(&session->report);
  source_close(&session->lines);
  source_close(&session->answers);
  if (session->file >= 0) close(session->file);
  free(session->line);
  free(session->id);
  free(session->removal.tree);
  bury(session);
}

/* ---- writing to the shell, and reading its answers ---- */

/*
 * The descriptor on which the shell answers the agent. Bash scripts hardly use 251. A plain sh has only descriptors of one digit.
 */
int session_answer_fd(const struct session *session) { return session->flags & SESSION_BASH ? 251 : 9; }

static void write_line(struct session *session) {
  while (session->line_at < session->line_size && session->lines.fd >= 0) {
    ssize_t written = write(session->lines.fd, session->line + session->line_at, session->line_size - session->line_at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      source_watch(&session->lines, EPOLLOUT);
      return;
    }
    if (written < 0) source_close(&session->lines); /* the shell no longer reads; its end will be reported */
    else session->line_at += (size_t)written;
  }
  source_watch(&session->lines, 0);
  free(session->line);
  session->line = NULL;
  session->line_at = session->line_size = 0;
}

bool session_say(struct session *session, uint8_t *line, size_t size) {
  size_t unsaid = session->line_size - session->line_at;
  if (unsaid) { /* an earlier text is still being written: another process has reported a false end of the command */
    uint8_t *both = malloc(unsaid + size);
    if (both) {
      memcpy(both, session->line + session->line_at, unsaid);
      memcpy(both + unsaid, line, size);
    }
    free(line);
    if (!both) return false;
    line = both;
    size += unsaid;
  }
  free(session->line);
  session->line = line;
  session->line_at = 0;
  session->line_size = size;
  write_line(session);
  return true;
}

static void on_lines_room(struct source *source, uint32_t events) {
  (void)events;
  write_line(owner_of(source, struct session, lines));
}

/*
 * Parses "serial exit-code" from the answer pipe. Accepts only the serial of the running command, because any process may
 * write to the pipe.
 */
static void hear(struct session *session, const char *answer) {
  char *end;
  unsigned long long serial = strtoull(answer, &end, 10);
  if (!session->running || serial != session->running->serial || *end != ' ') return;
  session_command_ended(session->running, EXITED, (uint32_t)strtoul(end + 1, NULL, 10) & 255u);
  session_continue(session);
}

static void on_answers(struct source *source, uint32_t events) {
  (void)events;
  struct session *session = owner_of(source, struct session, answers);
  char bytes[256];
  ssize_t got = read(source->fd, bytes, sizeof bytes);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    source_close(source);
    return;
  }
  for (ssize_t i = 0; i < got; i++) {
    if (bytes[i] != '\n') {
      if (session->answer_size < sizeof session->answer - 1) session->answer[session->answer_size++] = bytes[i];
      continue;
    }
    session->answer[session->answer_size] = 0;
    session->answer_size = 0;
    hear(session, session->answer);
  }
}

/* ---- start and end of sessions ---- */

/* Makes the shell move the pipe for its answers to another descriptor, so that no output of commands gets into this pipe. */
static void say_opening(struct session *session) {
  char *line = NULL;
  int size = asprintf(&line, "exec %d>&1 >/dev/null\n", session_answer_fd(session));
  if (size > 0) session_say(session, (uint8_t *)line, (size_t)size);
}

static void on_report(struct source *source, uint32_t events) {
  (void)events;
  struct session *session = owner_of(source, struct session, report);
  uint8_t payload[5];
  ssize_t got = read(source->fd, payload, sizeof payload);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  source_close(source);
  struct connection *opener = session->opener;
  session->opener = NULL;
  if (opener) opener->state = NULL;
  if (got == (ssize_t)sizeof payload) {
    /* The shell could not start, so end the session and remove it from the list. */
    session->state = JOB_ENDED;
    if (opener) connection_fail(opener, payload[0], (int)get_u32(payload + 1));
    session_commands_never_run(session);
    if (!session->unlisted) session_unlist(session);
    return;
  }
  session->state = JOB_RUNNING;
  say_opening(session);
  put_u32(payload, (uint32_t)session->group);
  if (opener) {
    connection_send(opener, KIND_OK, payload, 4);
    connection_end(opener);
  }
  session_continue(session);
}

static void on_ended(struct child *child, int status) {
  struct session *session = owner_of(child, struct session, child);
  if (session->state == JOB_STARTING) on_report(&session->report, EPOLLIN);
  if (session->state == JOB_RUNNING) {
    while (session->answers.fd >= 0 && session->running) {
      const struct session_command *before = session->running;
      size_t heard = session->answer_size;
      on_answers(&session->answers, EPOLLIN);
      if (session->running == before && session->answer_size == heard) break;
    }
    session->state = JOB_ENDED;
    session->status = status;
    uint8_t exit[5];
    exit_payload(exit, status);
    if (session->running) session_command_ended(session->running, exit[0], get_u32(exit + 1));
    session_commands_never_run(session);
    source_close(&session->lines);
    source_close(&session->answers);
  }
  session->settled = true;
  session_removal_continue(session);
  session_release(session);
}

void session_started(struct session *session, pid_t pid, int lines, int answers, int report) {
  session->group = pid;
  reaper_expect(&session->child, pid, on_ended);
  source_open(&session->lines, lines, on_lines_room);
  source_open(&session->answers, answers, on_answers);
  source_open(&session->report, report, on_report);
  source_watch(&session->report, EPOLLIN);
  source_watch(&session->answers, EPOLLIN);
}
