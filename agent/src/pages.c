/*
 * Output of a command goes through two pipes (pages.h): from the pipe `taken` to a ring, from the pipe `doubled` to a peer. The
 * pipe `doubled` has a frame header and a copy of the output. Both pipes are empty after each use. Unused pipes are closed, because
 * the kernel limits the pipes of a user, and all sandboxes may be of one user.
 */
#include "pages.h"

#include <fcntl.h>
#include <unistd.h>

#include "wire.h"

static int taken[2] = {-1, -1}, doubled[2] = {-1, -1};
static bool refused;

static bool open_pipe(int ends[2], int size) {
  return pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 && fcntl(ends[1], F_SETPIPE_SZ, size) >= size;
}

static void close_pipe(int ends[2]) {
  for (int i = 0; i < 2; i++) {
    if (ends[i] >= 0) close(ends[i]);
    ends[i] = -1;
  }
}

static void close_both(void) {
  close_pipe(taken);
  close_pipe(doubled);
}

void pages_drop(void) {
  close_both();
  refused = false;
}

bool pages_ready(void) {
  if (refused || taken[0] >= 0) return !refused;
  if (open_pipe(taken, LONG_CHUNK) && open_pipe(doubled, 2 * LONG_CHUNK)) return true;
  close_both();
  refused = true; /* the user's other pipes use up the limit; each further attempt would cost time */
  return false;
}

ssize_t pages_take(int pipe, size_t at_most) {
  return splice(pipe, NULL, taken[1], NULL, at_most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
}

int pages_taken(void) { return taken[0]; }

bool pages_double(const uint8_t *header, size_t size) {
  return write(doubled[1], header, FRAME_HEADER) == FRAME_HEADER &&
         tee(taken[0], doubled[1], size, SPLICE_F_NONBLOCK) == (ssize_t)size;
}

int pages_doubled(void) { return doubled[0]; }
