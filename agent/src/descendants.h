/* Finds processes through /proc: all descendants of a process, and all members of its session. */
#ifndef ALCOVE_DESCENDANTS_H
#define ALCOVE_DESCENDANTS_H

#include <stdbool.h>
#include <sys/types.h>

/* Identifies a process even if its pid is reused later. */
struct process_mark {
  pid_t pid;
  unsigned long long started;
};

/*
 * Returns the descendants of `root` and the other members of its session; none if `root` is 0. Adds the processes in `known` that
 * still live, and their descendants. The caller frees the result.
 */
struct process_mark *descendants_find(pid_t root, const struct process_mark *known, size_t known_count, size_t *count);
/*
 * Returns the pid and start time of a process. Together they identify the process even if the pid is reused. The pid is 0 if the
 * process does not live.
 */
struct process_mark process_mark_of(pid_t);
bool process_lives(const struct process_mark *);

/* Sends a signal to all descendants of `root` and to all members of its session, but not to `root` itself. */
void descendants_signal(pid_t root, int signal_number);

#endif
