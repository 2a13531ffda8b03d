/*
 * Reads and discards the output of processes that a command has left behind. Without a reader, SIGPIPE would end these processes.
 */
#ifndef ALCOVE_SINK_H
#define ALCOVE_SINK_H

/* Takes over the reading end of a pipe and discards its data until it ends. */
void sink_take(int fd);

#endif
