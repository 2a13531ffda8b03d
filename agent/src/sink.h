/*
 * Takes the output of background children after their last reader has gone. Closing their pipe would end them with SIGPIPE at
 * their next line.
 */
#ifndef ALCOVE_SINK_H
#define ALCOVE_SINK_H

/* Takes over the reading end of a pipe and discards its data until it ends. */
void sink_take(int fd);

#endif
