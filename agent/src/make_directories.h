/*
 * mkdir -p.
 */
#ifndef ALCOVE_MAKE_DIRECTORIES_H
#define ALCOVE_MAKE_DIRECTORIES_H

#include <stdbool.h>

/* Every directory that is missing on the way to the last part of the path. Changes the path only while it runs. */
bool make_parents(char *path);

#endif
