/* LIST: sends one frame per job, as fast as the peer reads. A job that starts or is removed meanwhile may or may not be listed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "operations.h"

struct listing {
  uint64_t last_serial;
};

static uint32_t describe(const struct job *job, uint8_t *payload) {
  uint8_t *at = put_string(payload, job->id, strlen(job->id));
  *at++ = job->is_terminal;
  *at++ = job->state;
  at = put_u32(at, (uint32_t)job->group);
  exit_payload(at, job->status);
  at = put_u64(at + 5, ring_next(&job->record.ring, 0));
  at = put_u64(at, job->record.ring.end);
  at = put_u64(at, job->created_at);
  at = put_u64(at, job->ended_at);
  at = put_u32(at, (uint32_t)job->cols << 16 | job->rows);
  at = put_u32(at, job->metadata_size);
  memcpy(at, job->metadata, job->metadata_size);
  return (uint32_t)(at + job->metadata_size - payload);
}

static void continue_listing(struct connection *connection) {
  struct listing *listing = connection->state;
  for (struct job *job = jobs; job; job = job->next) {
    if (job->serial <= listing->last_serial) continue;
    if (!connection_is_drained(connection)) return;
    listing->last_serial = job->serial;
    connection_send_chunk(connection, KIND_JOB, describe(job, connection_chunk(connection)));
  }
  if (!connection_is_drained(connection)) return;
  connection_send(connection, KIND_END, NULL, 0);
  connection_end(connection);
}

static void on_closed(struct connection *connection) { bury(connection->state); }

static const struct operation list_operation = {.drained = continue_listing, .closed = on_closed};

void list_start(struct connection *connection, struct fields *request) {
  struct listing *listing = calloc(1, sizeof *listing);
  if (!fields_complete(request) || !listing) {
    free(listing);
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  connection->operation = &list_operation;
  connection->state = listing;
  connection_send(connection, KIND_OK, NULL, 0);
  if (connection->socket.fd >= 0) continue_listing(connection);
}
