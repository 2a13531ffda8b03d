/*
 * Finding processes through /proc: all that descend from one, or belong to its session.
 */
#ifndef ALCOVE_DESCENDANTS_H
#define ALCOVE_DESCENDANTS_H

#include <stdbool.h>
#include <sys/types.h>

/* A process, also when its number has been given to another one since. */
struct process_mark {
  pid_t pid;
  unsigned long long started;
};

/*
 * Every process that descends from `root` or is in the session that it led, or is one of those known already, or descends
 * from one; not `root` itself. `root` may be 0: nobody. To be freed.
 */
struct process_mark *descendants_find(pid_t root, const struct process_mark *known, size_t known_count, size_t *count);
bool process_lives(const struct process_mark *);

/* Signals every process that descends from `root` or is in the session that it led; not `root` itself. */
void descendants_signal(pid_t root, int signal_number);

#endif
