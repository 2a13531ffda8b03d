/* Reads from a limited number of pipes and discards the data. Above the limit, closes the new pipe instead of reading it. */
#include "sink.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "loop.h"

#define SINKS_MAX 512
#define SINK_BYTES 65536

struct sink {
  struct source pipe;
};

static unsigned sinks;

static void on_readable(struct source *source, uint32_t events) {
  (void)events;
  static char nowhere[SINK_BYTES];
  ssize_t got = read(source->fd, nowhere, sizeof nowhere);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  source_close(source);
  sinks--;
  bury(owner_of(source, struct sink, pipe));
}

void sink_take(int fd) {
  if (fd < 0) return;
  struct sink *sink = sinks < SINKS_MAX ? malloc(sizeof *sink) : NULL;
  if (!sink) {
    close(fd);
    return;
  }
  sinks++;
  source_open(&sink->pipe, fd, on_readable);
  source_watch(&sink->pipe, EPOLLIN);
}
