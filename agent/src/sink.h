/*
 * Where the output of background children goes when nobody listens any more. Closing their pipe instead would end them
 * with SIGPIPE at their next line.
 */
#ifndef ALCOVE_SINK_H
#define ALCOVE_SINK_H

/* Takes the reading end of a pipe and reads it empty until it ends. */
void sink_take(int fd);

#endif
