/*
 * Finding processes through /proc: all that descend from one, or belong to its session.
 */
#ifndef ALCOVE_DESCENDANTS_H
#define ALCOVE_DESCENDANTS_H

#include <sys/types.h>

/* Signals every process that descends from `root` or is in the session that it led; not `root` itself. */
void descendants_signal(pid_t root, int signal_number);

#endif
