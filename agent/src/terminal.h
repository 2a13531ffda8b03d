/*
 * Pseudo-terminals.
 */
#ifndef ALCOVE_TERMINAL_H
#define ALCOVE_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/* Both ends of a new terminal of this size; the master does not block. False: errno. */
bool terminal_open(uint16_t cols, uint16_t rows, int *master, int *slave);
/* Changes the size; the foreground processes get SIGWINCH. */
bool terminal_resize(int master, uint16_t cols, uint16_t rows);

#endif
