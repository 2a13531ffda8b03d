/*
 * Copies bytes between the caller's terminal and the command's terminal. Each direction has its own buffer, so a slow terminal does
 * not block the other direction.
 */
#include "sudo_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "terminal.h"

bool passage_open(struct passage *passage) {
  *passage = (struct passage){.user = -1, .output = -1, .master = -1, .slave = -1};
  for (int fd = 0; fd <= 2; fd++) {
    if (!isatty(fd)) continue;
    if (passage->user < 0) passage->user = fd;
    if (fd == 1 || passage->output != 1) passage->output = fd;
  }
  if (passage->user < 0 || !terminal_open(80, 24, &passage->master, &passage->slave)) return false;
  /* Read keys from the caller's terminal even if standard input is, for example, a pipe. */
  int own = passage->user == 0 ? -1 : open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (own >= 0) passage->user = own;
  if (tcgetattr(passage->user, &passage->modes) == 0) tcsetattr(passage->slave, TCSANOW, &passage->modes);
  passage_resize(passage);
  return true;
}

bool passage_is_foreground(const struct passage *passage) {
  pid_t group = tcgetpgrp(passage->user);
  return group < 0 || group == getpgrp(); /* if the terminal is not our controlling terminal, every process may read from it */
}

void passage_make_raw(struct passage *passage) {
  if (passage->is_raw) return;
  tcgetattr(passage->user, &passage->modes);
  struct termios raw = passage->modes;
  cfmakeraw(&raw);
  passage->is_raw = tcsetattr(passage->user, TCSADRAIN, &raw) == 0;
}

void passage_restore(struct passage *passage) {
  if (passage->is_raw && passage_is_foreground(passage)) tcsetattr(passage->user, TCSADRAIN, &passage->modes);
  passage->is_raw = false;
}

void passage_resize(const struct passage *passage) {
  struct winsize size;
  if (ioctl(passage->user, TIOCGWINSZ, &size) == 0) ioctl(passage->master, TIOCSWINSZ, &size);
}

bool passage_read_keys(struct passage *passage) {
  ssize_t got = read(passage->user, passage->typed, sizeof passage->typed);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) return false;
  passage->typed_start = 0;
  passage->typed_end = (uint32_t)got;
  return passage_write_keys(passage);
}

bool passage_write_keys(struct passage *passage) {
  ssize_t taken = write(passage->master, passage->typed + passage->typed_start, passage->typed_end - passage->typed_start);
  if (taken < 0) return errno == EAGAIN || errno == EINTR;
  passage->typed_start += (uint32_t)taken;
  return true;
}

bool passage_show(struct passage *passage) {
  char shown[4096];
  ssize_t got = read(passage->master, shown, sizeof shown);
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  for (ssize_t at = 0; at < got;) {
    ssize_t written = write(passage->output, shown + at, (size_t)(got - at));
    if (written > 0) at += written;
    else if (written < 0 && errno == EAGAIN) poll(&(struct pollfd){.fd = passage->output, .events = POLLOUT}, 1, 1000);
    else if (written < 0 && errno == EINTR) continue;
    else return false;
  }
  return true;
}
