/*
 * SESSION_REMOVE: removes the session from the list, then sends all its processes SIGTERM, and SIGKILL after five seconds. Answers
 * when all have ended, at the latest two seconds after SIGKILL. The processes are recorded first, so a process whose parent ends
 * later is still killed.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "operations.h"
#include "session.h"

#define GRACE_MILLISECONDS 5000u
#define AFTER_KILL_MILLISECONDS 2000u
#define LOOK_AGAIN_MILLISECONDS 20u
#define ROUNDS 8

/* Whether the shell's pid still belongs to the shell. After the shell's end, another process of the agent may get this pid. */
static bool is_number_ours(const struct session *session) { return session->child.pid || !reaper_knows(session->group); }

/* Records the session's processes. Returns true if it found more processes than the previous call. */
static bool find_tree(struct session *session) {
  struct session_removal *removal = &session->removal;
  size_t before = removal->tree_size;
  pid_t root = is_number_ours(session) ? session->group : 0;
  struct process_mark *tree = descendants_find(root, removal->tree, before, &removal->tree_size);
  free(removal->tree);
  removal->tree = tree;
  return removal->tree_size > before;
}

static void signal_tree(const struct session *session, int number) {
  const struct session_removal *removal = &session->removal;
  if (session->child.pid) kill(session->child.pid, number);
  for (size_t i = 0; i < removal->tree_size; i++)
    if (process_lives(&removal->tree[i])) kill(removal->tree[i].pid, number);
}

/*
 * Stops all processes of the session before they are killed. Otherwise a process could fork, or lose its parent, during the search.
 */
static void kill_tree(struct session *session) {
  for (int round = 0; round < ROUNDS; round++) {
    signal_tree(session, SIGSTOP);
    if (!find_tree(session)) break;
  }
  signal_tree(session, SIGKILL);
}

static bool is_anybody_left(struct session *session) {
  struct session_removal *removal = &session->removal;
  size_t left = 0;
  for (size_t i = 0; i < removal->tree_size; i++)
    if (process_lives(&removal->tree[i])) removal->tree[left++] = removal->tree[i];
  removal->tree_size = left;
  return left > 0 || session->child.pid;
}

static void finish(struct session *session) {
  struct session_removal *removal = &session->removal;
  struct connection *connection = removal->connection;
  timer_clear(&removal->timer);
  if (session->child.pid) { /* even SIGKILL has not ended the shell yet */
    reaper_forget(&session->child);
    if (session->running) session_command_ended(session->running, KILLED, SIGKILL);
    session_commands_never_run(session);
    session->settled = true;
  }
  if (connection) {
    removal->connection = NULL;
    connection->operation = NULL;
    connection->state = NULL;
    connection_send(connection, KIND_OK, NULL, 0);
    connection_end(connection);
  }
  session_release(session);
}

static void look(struct timer *timer) {
  struct session *session = owner_of(timer, struct session, removal.timer);
  struct session_removal *removal = &session->removal;
  uint64_t now = now_milliseconds();
  if (!is_anybody_left(session)) {
    find_tree(session); /* finds processes that were started while other processes ended */
    if (!removal->tree_size) {
      finish(session);
      return;
    }
    signal_tree(session, SIGTERM);
  }
  if (now >= removal->kill_at) {
    kill_tree(session);
  }
  if (now >= removal->give_up_at) finish(session);
  else timer_set(timer, LOOK_AGAIN_MILLISECONDS, look);
}

void session_removal_continue(struct session *session) {
  if (session->removal.timer.at) timer_set(&session->removal.timer, 0, look);
}

static void on_closed(struct connection *connection) {
  struct session *session = connection->state;
  session->removal.connection = NULL;
}

static const struct operation remove_operation = {.closed = on_closed};

void session_remove_start(struct connection *connection, struct fields *request) {
  char *id = take_string(request);
  if (!fields_complete(request)) {
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  struct session *session = session_named(connection, id);
  if (!session) return;
  struct session_removal *removal = &session->removal;
  session_unlist(session);
  removal->connection = connection;
  removal->kill_at = now_milliseconds() + GRACE_MILLISECONDS;
  removal->give_up_at = removal->kill_at + AFTER_KILL_MILLISECONDS;
  connection->operation = &remove_operation;
  connection->state = session;
  find_tree(session);
  signal_tree(session, SIGTERM);
  signal_tree(session, SIGCONT);
  timer_set(&removal->timer, 0, look);
}
