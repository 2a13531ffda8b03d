/*
 * Opens and resizes pseudo-terminals.
 */
#ifndef ALCOVE_TERMINAL_H
#define ALCOVE_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/* Opens both ends of a new terminal of this size. The master is non-blocking. Returns false with errno. */
bool terminal_open(uint16_t cols, uint16_t rows, int *master, int *slave);
/* Changes the size of a terminal. Its foreground processes get SIGWINCH. */
bool terminal_resize(int master, uint16_t cols, uint16_t rows);

#endif
