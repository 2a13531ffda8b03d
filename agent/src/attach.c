/* ATTACH: sends a job's stored output from an offset on, then new output as it arrives, then the job's exit status. */
#include <errno.h>

#include "job.h"
#include "operations.h"

void attach_start(struct connection *connection, struct fields *request) {
  char *id = take_string(request);
  uint64_t offset = take_u64(request);
  uint8_t follows = take_u8(request);
  if (!fields_complete(request) || follows > 1) {
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  struct job *job = job_named(connection, id);
  if (job) record_follow(connection, &job->record, offset, follows);
}
