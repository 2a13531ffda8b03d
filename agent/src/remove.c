/*
 * REMOVE: kills those processes of a job which the agent can find, and frees the job when its first process is reaped. The
 * followers get the exit before REMOVE is answered.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "descendants.h"
#include "job.h"
#include "operations.h"

static struct remove_wait *unlink_wait(struct job *job, const struct connection *connection) {
  for (struct remove_wait **link = &job->removers; *link; link = &(*link)->next)
    if ((*link)->connection == connection) {
      struct remove_wait *wait = *link;
      *link = wait->next;
      return wait;
    }
  return NULL;
}

void removers_continue(struct job *job) {
  if (!job->removing) return;
  while (job->removers) {
    struct remove_wait *wait = job->removers;
    struct connection *connection = wait->connection;
    job->removers = wait->next;
    bury(wait);
    connection->operation = NULL;
    connection->state = NULL;
    connection_send(connection, KIND_OK, NULL, 0);
    connection_end(connection);
  }
  job_release(job);
}

static void on_closed(struct connection *connection) {
  struct job *job = connection->state;
  bury(unlink_wait(job, connection));
}

static const struct operation remove_operation = {.closed = on_closed};

void remove_start(struct connection *connection, struct fields *request) {
  char *id = take_string(request);
  if (!fields_complete(request)) {
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  struct job *job = job_named(connection, id);
  if (!job) return;
  struct remove_wait *wait = calloc(1, sizeof *wait);
  if (!wait) {
    connection_fail(connection, STAGE_BUSY, ENOMEM);
    return;
  }
  wait->connection = connection;
  wait->next = job->removers;
  job->removers = wait;
  job->removing = true;
  connection->operation = &remove_operation;
  connection->state = job;
  /*
   * Stop the job's process group before /proc is searched for the job's processes. Otherwise the group's leader could start new
   * processes meanwhile.
   */
  child_signal_group(&job->child, job->group, SIGSTOP);
  /*
   * The job's first process may have ended, and another child of the agent may have its pid now. The descendants of that child are
   * not the job's, so they get no signal.
   */
  if (job->child.pid || !reaper_knows(job->group)) descendants_signal(job->group, SIGKILL);
  child_signal_group(&job->child, job->group, SIGKILL);
  if (job->state == JOB_ENDED) removers_continue(job);
}
