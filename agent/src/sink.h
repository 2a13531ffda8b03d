/*
 * Takes the output of background children after their last reader has gone. Without a reader, SIGPIPE would end the children at
 * their next line.
 */
#ifndef ALCOVE_SINK_H
#define ALCOVE_SINK_H

/* Takes over the reading end of a pipe and discards its data until it ends. */
void sink_take(int fd);

#endif
