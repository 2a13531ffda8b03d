/* SESSION_EXEC, COMMAND_ATTACH, COMMAND_INPUT, COMMAND_SHOW: requests about one command of a session. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "operations.h"
#include "session.h"
#include "session_frames.h"

static void answer(struct connection *connection) {
  connection_send(connection, KIND_OK, NULL, 0);
  connection_end(connection);
}

/* Finds a command of a session by their ids. If one is missing, sends FAILED with the reason on the connection and returns NULL. */
static struct session_command *command_named(struct connection *connection, const char *session_id, const char *id) {
  struct session *session = session_named(connection, session_id);
  if (!session) return NULL;
  struct session_command *command = session_command_find(session, id);
  if (!command) connection_fail(connection, STAGE_JOB, ESRCH);
  return command;
}

void session_exec_start(struct connection *connection, struct fields *request) {
  char *session_id = take_string(request), *id = take_string(request);
  uint8_t flags = take_u8(request);
  uint32_t size;
  const uint8_t *text = take_bytes(request, &size);
  if (!fields_complete(request) || !job_may_be_called(id) || flags > (COMMAND_FLAGS | EXEC_FOLLOWS) || size > COMMAND_TEXT_MAX || memchr(text, 0, size)) {
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  struct session *session = session_named(connection, session_id);
  if (!session) return;
  struct session_command *command = NULL;
  if (session->state == JOB_ENDED) connection_fail(connection, STAGE_JOB, EPIPE);
  else if (session_command_find(session, id)) connection_fail(connection, STAGE_JOB, EEXIST);
  else if (!(command = session_command_add(session, id, flags & COMMAND_FLAGS, text, size)))
    connection_fail(connection, STAGE_BUSY, errno);
  if (!command) return;
  /*
   * Follow the command before it runs. Otherwise it could end, and be evicted as an ended command, before the follower is
   * registered.
   */
  if (flags & EXEC_FOLLOWS) record_follow(connection, &command->record, 0, true);
  else answer(connection);
  session_continue(session);
}

void command_attach_start(struct connection *connection, struct fields *request) {
  char *session_id = take_string(request), *id = take_string(request);
  uint64_t offset = take_u64(request);
  uint8_t follows = take_u8(request);
  if (!fields_complete(request) || follows > 1) {
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  struct session_command *command = command_named(connection, session_id, id);
  if (command) record_follow(connection, &command->record, offset, follows);
}

void command_input_start(struct connection *connection, struct fields *request) {
  char *session_id = take_string(request), *id = take_string(request);
  uint8_t flags = take_u8(request);
  uint32_t size;
  const uint8_t *bytes = take_bytes(request, &size);
  if (!fields_complete(request) || flags > INPUT_CLOSE) {
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  struct session_command *command = command_named(connection, session_id, id);
  if (!command) return;
  if (command->state == COMMAND_ENDED) connection_fail(connection, STAGE_JOB, EALREADY);
  else if (!(command->flags & COMMAND_KEEP_INPUT) || command->input_closing) connection_fail(connection, STAGE_JOB, ENOTTY);
  else if (!session_command_input(command, bytes, size, flags & INPUT_CLOSE)) connection_fail(connection, STAGE_BUSY, ENOBUFS);
  else answer(connection);
}

/* ---- COMMAND_SHOW: sends the text of a command ---- */

struct showing {
  uint8_t *text;
  uint32_t at, size;
};

static void continue_showing(struct connection *connection) {
  struct showing *showing = connection->state;
  while (showing->at < showing->size && connection_is_drained(connection)) {
    uint32_t piece = showing->size - showing->at < CHUNK ? showing->size - showing->at : CHUNK;
    memcpy(connection_chunk(connection), showing->text + showing->at, piece);
    showing->at += piece;
    connection_send_chunk(connection, KIND_TEXT, piece);
  }
  if (!connection_is_drained(connection)) return;
  connection_send(connection, KIND_END, NULL, 0);
  connection_end(connection);
}

static void on_closed(struct connection *connection) {
  struct showing *showing = connection->state;
  free(showing->text);
  bury(showing);
}

static const struct operation show_operation = {.drained = continue_showing, .closed = on_closed};

void command_show_start(struct connection *connection, struct fields *request) {
  char *session_id = take_string(request), *id = take_string(request);
  if (!fields_complete(request)) {
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  struct session_command *command = command_named(connection, session_id, id);
  if (!command) return;
  struct showing *showing = calloc(1, sizeof *showing);
  uint8_t *text = session_command_text(command);
  if (!showing || !text) {
    free(showing);
    free(text);
    connection_fail(connection, STAGE_SYSTEM, EIO);
    return;
  }
  *showing = (struct showing){.text = text, .size = command->text_size};
  connection->operation = &show_operation;
  connection->state = showing;
  connection_send(connection, KIND_OK, NULL, 0);
  uint8_t *chunk = connection_chunk(connection);
  if (connection->socket.fd >= 0) connection_send_chunk(connection, KIND_COMMAND, command_describe(command, 0, chunk));
  if (connection->socket.fd >= 0) continue_showing(connection);
}
