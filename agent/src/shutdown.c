/*
 * A shutdown waits, sends SIGKILL to all processes, and waits again. Then the agent exits, even if SIGKILL could not end some
 * processes. The exit of PID 1 ends these processes, too.
 */
#include "shutdown.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "descendants.h"
#include "job.h"
#include "operations.h"
#include "reaper.h"

#define GRACE_MAX_MILLISECONDS 600000u
#define AFTER_KILL_MILLISECONDS 2000u
#define LAST_WORDS_MILLISECONDS 20u
#define HANG_UP_AGAIN_MILLISECONDS 250u

static bool begun;
static struct timer next_step;
static struct timer hanging_up;

static void leave(struct timer *timer) {
  (void)timer;
  exit(0);
}

/* Sends a signal to all processes. PID 1 can signal every process; an agent in a test may signal only its descendants. */
static void signal_all(int signal_number) {
  if (getpid() == 1) kill(-1, signal_number);
  else descendants_signal(getpid(), signal_number);
}

static void kill_all(struct timer *timer) {
  (void)timer;
  signal_all(SIGKILL);
  timer_set(&next_step, AFTER_KILL_MILLISECONDS, leave);
}

/*
 * Sends SIGHUP repeatedly, because bash's readline records only one pending signal: a SIGHUP that arrives together with the
 * SIGTERM may be lost.
 */
static void hang_up(struct timer *timer) {
  jobs_hang_up();
  timer_set(timer, HANG_UP_AGAIN_MILLISECONDS, hang_up);
}

void shutdown_begin(uint32_t grace_milliseconds) {
  if (grace_milliseconds > GRACE_MAX_MILLISECONDS) grace_milliseconds = GRACE_MAX_MILLISECONDS;
  if (begun) {
    /* A shutdown has begun already. This request can only make the wait before SIGKILL shorter. */
    if (next_step.fire == kill_all && next_step.at > now_milliseconds() + grace_milliseconds)
      timer_set(&next_step, grace_milliseconds, kill_all);
    return;
  }
  begun = true;
  signal_all(SIGTERM);
  hang_up(&hanging_up);
  signal_all(SIGCONT);
  timer_set(&next_step, grace_milliseconds, kill_all);
  if (reaper_reap()) shutdown_nobody_left();
}

bool shutdown_has_begun(void) { return begun; }

/* If a shutdown has begun, makes the agent exit after LAST_WORDS_MILLISECONDS. In this time the last output is sent. */
void shutdown_nobody_left(void) {
  bool is_leaving = next_step.fire == leave && next_step.at <= now_milliseconds() + LAST_WORDS_MILLISECONDS;
  if (begun && !is_leaving) timer_set(&next_step, LAST_WORDS_MILLISECONDS, leave);
}

void shutdown_start(struct connection *connection, struct fields *request) {
  uint32_t grace = take_u32(request);
  if (!fields_complete(request)) {
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  static const struct operation until_the_end = {0};
  connection->operation = &until_the_end;
  connection_send(connection, KIND_OK, NULL, 0);
  shutdown_begin(grace);
}
