/*
 * alcove-agent: PID 1 of a sandbox. It answers requests on a listening socket that it inherits as descriptor 3. It owns the
 * sandbox's processes and terminals, so that they outlive the runner. Called as `sudo`, it is the sudo client (sudo_client.c).
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "connection.h"
#include "reaper.h"
#include "setup.h"
#include "sudo.h"

#define LISTENING_FD 3

static int check_listening_socket(void) {
  int listening = 0;
  socklen_t size = sizeof listening;
  if (getsockopt(LISTENING_FD, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) < 0 || !listening) return -1;
  if (fcntl(LISTENING_FD, F_SETFD, FD_CLOEXEC) < 0) return -1;
  return fcntl(LISTENING_FD, F_SETFL, O_NONBLOCK | fcntl(LISTENING_FD, F_GETFL));
}

static bool is_called_sudo(const char *name) {
  const char *slash = strrchr(name, '/');
  return strcmp(slash ? slash + 1 : name, "sudo") == 0;
}

/* Usage: alcove-agent [--sudo SOCKET USER PATH]. The options are described in sudo.h. */
int main(int argc, char **argv) {
  if (argc > 0 && is_called_sudo(argv[0])) sudo_client(argc, argv);
  setup_agent();
  if (check_listening_socket() < 0) {
    fprintf(stderr, "alcove-agent: descriptor 3 is not a listening socket\n");
    return 2;
  }
  loop_start();
  reaper_start();
  connections_start(LISTENING_FD);
  if (argc == 5 && strcmp(argv[1], "--sudo") == 0)
    sudo_start(&(struct sudo_policy){.socket = argv[2], .user = argv[3], .path = argv[4]});
  loop_run();
}
