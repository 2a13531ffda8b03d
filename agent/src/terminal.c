/* Opens and resizes pseudo-terminals. The slave is opened through the master (TIOCGPTPEER) and not by a path, because the sandbox
 * can change /dev. */
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER 0x5441
#endif

bool terminal_resize(int master, uint16_t cols, uint16_t rows) {
  struct winsize size = {.ws_col = cols, .ws_row = rows};
  return ioctl(master, TIOCSWINSZ, &size) == 0;
}

bool terminal_open(uint16_t cols, uint16_t rows, int *master, int *slave) {
  int unlock = 0;
  struct termios modes;
  /* The sandbox may have put any file at /dev/ptmx. So do not block; the ioctls below fail for all files but terminals. */
  *master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (*master < 0) return false;
  *slave = ioctl(*master, TIOCSPTLCK, &unlock) == 0 ? ioctl(*master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
  if (*slave < 0) {
    int reason = errno;
    close(*master);
    errno = reason;
    return false;
  }
  if (tcgetattr(*slave, &modes) == 0) {
    modes.c_iflag |= IUTF8; /* backspace deletes whole UTF-8 characters */
    tcsetattr(*slave, TCSANOW, &modes);
  }
  terminal_resize(*master, cols, rows);
  return true;
}
