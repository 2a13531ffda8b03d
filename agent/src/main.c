/*
 * alcove-agent: PID 1 of a sandbox. It answers requests on a listening socket that it inherits as descriptor 3. It owns the
 * sandbox's processes and terminals, so that they outlive the runner.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

#include "connection.h"
#include "reaper.h"
#include "setup.h"

#define LISTENING_FD 3

static int check_listening_socket(void) {
  int listening = 0;
  socklen_t size = sizeof listening;
  if (getsockopt(LISTENING_FD, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) < 0 || !listening) return -1;
  if (fcntl(LISTENING_FD, F_SETFD, FD_CLOEXEC) < 0) return -1;
  return fcntl(LISTENING_FD, F_SETFL, O_NONBLOCK | fcntl(LISTENING_FD, F_GETFL));
}

int main(void) {
  setup_agent();
  if (check_listening_socket() < 0) {
    fprintf(stderr, "alcove-agent: descriptor 3 is not a listening socket\n");
    return 2;
  }
  loop_start();
  reaper_start();
  connections_start(LISTENING_FD);
  loop_run();
}
