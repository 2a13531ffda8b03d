/*
 * Reads and discards the output of background children whose command's connection was closed. Without a reader, SIGPIPE would
 * end these children at their next output.
 */
#ifndef ALCOVE_SINK_H
#define ALCOVE_SINK_H

/* Takes over the reading end of a pipe and discards its data until it ends. */
void sink_take(int fd);

#endif
