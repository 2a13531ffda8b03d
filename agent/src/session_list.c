/*
 * SESSION_LIST: sends one session or all sessions, each followed by its commands, as fast as the peer reads. A session or command
 * that is added or removed meanwhile may or may not be listed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "operations.h"
#include "session_frames.h"

struct listing {
  uint64_t session, command; /* serials of the last session and command that were sent */
  uint64_t only;             /* serial of the only wanted session; 0: all */
};

uint32_t command_describe(const struct session_command *command, uint32_t text_max, uint8_t *payload) {
  uint8_t *at = put_string(payload, command->id, strlen(command->id));
  *at++ = command->state;
  if (command->state == COMMAND_ENDED) memcpy(at, command->record.exit, 5);
  else memset(at, 0, 5);
  at = put_u64(at + 5, ring_next(&command->record.ring, 0));
  at = put_u64(at, command->record.ring.end);
  at = put_u64(at, command->created_at);
  at = put_u64(at, command->ended_at);
  at = put_u32(at, command->text_size);
  uint32_t size = command->text_size < text_max ? command->text_size : text_max;
  uint8_t *text = size ? session_command_text(command) : NULL;
  if (!text) size = 0;
  at = put_u32(at, size);
  if (size) memcpy(at, text, size);
  free(text);
  return (uint32_t)(at + size - payload);
}

uint32_t session_describe(const struct session *session, uint8_t *payload) {
  uint8_t *at = put_string(payload, session->id, strlen(session->id));
  *at++ = session->state;
  at = put_u32(at, (uint32_t)session->group);
  exit_payload(at, session->status);
  at = put_u64(at + 5, session->created_at);
  return (uint32_t)(at - payload);
}

static bool tell_commands(struct connection *connection, struct listing *listing, const struct session *session) {
  for (struct session_command *command = session->commands; command; command = command->next) {
    if (command->serial <= listing->command) continue;
    if (!connection_is_drained(connection)) return false;
    listing->command = command->serial;
    uint8_t *chunk = connection_chunk(connection);
    connection_send_chunk(connection, KIND_COMMAND, command_describe(command, TEXT_IN_LIST_MAX, chunk));
  }
  return true;
}

static void continue_listing(struct connection *connection) {
  struct listing *listing = connection->state;
  for (struct session *session = sessions; session; session = session->next) {
    if (session->serial < listing->session || (listing->only && session->serial != listing->only)) continue;
    if (session->serial > listing->session) {
      if (!connection_is_drained(connection)) return;
      listing->session = session->serial;
      listing->command = 0;
      connection_send_chunk(connection, KIND_SESSION, session_describe(session, connection_chunk(connection)));
    }
    if (!tell_commands(connection, listing, session)) return;
  }
  if (!connection_is_drained(connection)) return;
  connection_send(connection, KIND_END, NULL, 0);
  connection_end(connection);
}

static void on_closed(struct connection *connection) { bury(connection->state); }

static const struct operation list_operation = {.drained = continue_listing, .closed = on_closed};

void session_list_start(struct connection *connection, struct fields *request) {
  char *id = take_string(request);
  if (!fields_complete(request)) {
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  const struct session *only = NULL;
  if (*id && !(only = session_named(connection, id))) return; /* after a failure `id` is freed, so nothing may use it */
  struct listing *listing = calloc(1, sizeof *listing);
  if (!listing) {
    connection_fail(connection, STAGE_BUSY, ENOMEM);
    return;
  }
  listing->only = only ? only->serial : 0;
  connection->operation = &list_operation;
  connection->state = listing;
  connection_send(connection, KIND_OK, NULL, 0);
  if (connection->socket.fd >= 0) continue_listing(connection);
}
