/* Like mkdir -p. */
#ifndef ALCOVE_MAKE_DIRECTORIES_H
#define ALCOVE_MAKE_DIRECTORIES_H

/*
 * Makes every directory that is missing on the way to the last part of the path. Returns how many it made, or -1 with errno.
 * The path is changed only while it runs.
 */
int make_parents(char *path);

#endif
