/*
 * SPAWN: starts a job, and answers whether its program runs. The job runs even if the caller has closed the connection meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "launch.h"
#include "operations.h"
#include "terminal.h"

struct spawn_request {
  uint8_t flags;
  char *id;
  uint16_t cols, rows;
  uint32_t ring, metadata_size;
  uint8_t *metadata;
  struct program program;
};

bool job_may_be_called(const char *id) {
  size_t size = 0;
  for (; id[size]; size++)
    if (id[size] < 0x21 || id[size] > 0x7e) return false;
  return size >= 1 && size <= JOB_ID_MAX;
}

static bool take_spawn(struct spawn_request *spawn, struct fields *request) {
  spawn->flags = take_u8(request);
  spawn->id = take_string(request);
  spawn->cols = take_u16(request);
  spawn->rows = take_u16(request);
  spawn->ring = take_u32(request);
  spawn->metadata = take_bytes(request, &spawn->metadata_size);
  if (!program_take(&spawn->program, request)) return false;
  return fields_complete(request) && spawn->flags <= SPAWN_FLAGS && job_may_be_called(spawn->id) && spawn->ring >= RING_MIN &&
         spawn->ring <= RING_MAX && spawn->metadata_size <= JOB_METADATA_MAX &&
         (!(spawn->flags & SPAWN_TERMINAL) || (spawn->cols && spawn->rows));
}

/*
 * `ours`: the agent's descriptors for input and output. `theirs`: descriptors 0, 1 and 2 of the job. All elements must be -1 before
 * the call. After a failure, the caller closes the elements that are not -1.
 */
static bool open_terminal(const struct spawn_request *spawn, int ours[3], int theirs[3]) {
  if (!terminal_open(spawn->cols, spawn->rows, &ours[1], &theirs[0])) {
    ours[1] = theirs[0] = -1;
    return false;
  }
  ours[0] = fcntl(ours[1], F_DUPFD_CLOEXEC, 4);
  theirs[1] = fcntl(theirs[0], F_DUPFD_CLOEXEC, 4);
  theirs[2] = fcntl(theirs[0], F_DUPFD_CLOEXEC, 4);
  return ours[0] >= 0 && theirs[1] >= 0 && theirs[2] >= 0;
}

static void on_spawner_closed(struct connection *connection) {
  struct job *job = connection->state;
  if (job) job->spawner = NULL;
}

static const struct operation spawn_operation = {.closed = on_spawner_closed};

static struct job *new_job(const struct spawn_request *spawn) {
  struct job *job = calloc(1, sizeof *job);
  uint8_t *metadata = malloc(spawn->metadata_size + 1);
  if (!job || !metadata) {
    free(job);
    free(metadata);
    return NULL;
  }
  memcpy(metadata, spawn->metadata, spawn->metadata_size);
  memcpy(job->id, spawn->id, strlen(spawn->id) + 1);
  job->metadata = metadata;
  job->metadata_size = spawn->metadata_size;
  job->is_terminal = spawn->flags & SPAWN_TERMINAL;
  job->keeps_failed = spawn->flags & SPAWN_KEEP_FAILED;
  job->cols = spawn->cols;
  job->rows = spawn->rows;
  return job;
}

/* Starts a job. Returns 0 or an errno. */
static int spawn_job(struct connection *connection, const struct spawn_request *spawn) {
  int ours[3] = {-1, -1, -1}, theirs[3] = {-1, -1, -1}, report = -1;
  struct job *job = new_job(spawn);
  if (!job) return ENOMEM;
  bool opened = job->is_terminal ? open_terminal(spawn, ours, theirs) : streams_open(false, ours, theirs);
  pid_t pid = opened ? launch(&spawn->program, theirs, job->is_terminal, &report) : -1;
  int reason = errno;
  streams_close(theirs);
  if (pid < 0) {
    streams_close(ours);
    free(job->metadata);
    free(job);
    return reason;
  }
  job_started(job, pid, spawn->ring, spawn->flags & SPAWN_KEEP_BEGINNING, ours, report);
  if (!job->is_terminal && !(spawn->flags & SPAWN_KEEP_INPUT)) source_close(&job->input);
  job->spawner = connection;
  connection->operation = &spawn_operation;
  connection->state = job;
  job_enlist(job);
  return 0;
}

void spawn_start(struct connection *connection, struct fields *request) {
  struct spawn_request spawn = {0};
  int reason = 0;
  if (!take_spawn(&spawn, request)) connection_fail(connection, STAGE_PROTOCOL, EPROTO);
  else if (job_find(spawn.id)) connection_fail(connection, STAGE_JOB, EEXIST);
  else if (jobs_are_full()) connection_fail(connection, STAGE_BUSY, EAGAIN);
  else if ((reason = spawn_job(connection, &spawn)) != 0) connection_fail(connection, STAGE_SYSTEM, reason);
  program_free(&spawn.program);
}
