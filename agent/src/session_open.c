/*
 * SESSION_OPEN: starts a shell, and answers whether it runs. The shell runs even if the caller has closed the connection meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"
#include "operations.h"
#include "session.h"

static void on_opener_closed(struct connection *connection) {
  struct session *session = connection->state;
  if (session) session->opener = NULL;
}

static const struct operation open_operation = {.closed = on_opener_closed};

static struct session *new_session(const char *id, uint8_t flags, uint32_t ring_bytes) {
  struct session *session = calloc(1, sizeof *session);
  char *copy = strdup(id);
  if (!session || !copy) {
    free(session);
    free(copy);
    return NULL;
  }
  session->id = copy;
  session->flags = flags;
  session->ring_bytes = ring_bytes;
  session->file = -1;
  return session;
}

/*
 * The agent writes commands to `ours[0]`. From `ours[1]`, the agent reads the shell's reports that a command has ended. The shell
 * gets `theirs` as its descriptors 0, 1 and 2.
 */
static bool open_pipes(int ours[2], int theirs[3]) {
  int lines[2], answers[2];
  if (pipe2(lines, O_CLOEXEC) < 0) return false;
  ours[0] = lines[1];
  theirs[0] = lines[0];
  if (pipe2(answers, O_CLOEXEC) < 0) return false;
  ours[1] = answers[0];
  theirs[1] = answers[1];
  theirs[2] = open("/dev/null", O_WRONLY | O_CLOEXEC);
  return theirs[2] >= 0 && fcntl(ours[0], F_SETFL, O_NONBLOCK) == 0 && fcntl(ours[1], F_SETFL, O_NONBLOCK) == 0;
}

/* Opens a session. Returns 0 or an errno. */
static int open_session(struct connection *connection, struct session *session, const struct program *program) {
  if (!session) return ENOMEM;
  int ours[2] = {-1, -1}, theirs[3] = {-1, -1, -1}, report = -1;
  pid_t pid = open_pipes(ours, theirs) ? launch(program, theirs, false, &report) : -1;
  int reason = errno;
  streams_close(theirs);
  if (pid < 0) {
    for (int i = 0; i < 2; i++)
      if (ours[i] >= 0) close(ours[i]);
    free(session->id);
    free(session);
    return reason;
  }
  session_started(session, pid, ours[0], ours[1], report);
  session->opener = connection;
  connection->operation = &open_operation;
  connection->state = session;
  session_enlist(session);
  return 0;
}

void session_open_start(struct connection *connection, struct fields *request) {
  char *id = take_string(request);
  uint8_t flags = take_u8(request);
  uint32_t ring_bytes = take_u32(request);
  struct program program;
  int reason = 0;
  bool is_valid = program_take(&program, request) && fields_complete(request) && *id && strlen(id) <= SESSION_ID_MAX &&
                  flags <= SESSION_BASH && ring_bytes >= RING_MIN && ring_bytes <= RING_MAX;
  if (!is_valid) connection_fail(connection, STAGE_PROTOCOL, EPROTO);
  else if (session_find(id)) connection_fail(connection, STAGE_JOB, EEXIST);
  else if (sessions_are_full()) connection_fail(connection, STAGE_BUSY, EAGAIN);
  else if ((reason = open_session(connection, new_session(id, flags, ring_bytes), &program)) != 0)
    connection_fail(connection, STAGE_SYSTEM, reason);
  program_free(&program);
}
