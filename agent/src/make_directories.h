/*
 * Makes directories with their missing parents, like mkdir -p.
 */
#ifndef ALCOVE_MAKE_DIRECTORIES_H
#define ALCOVE_MAKE_DIRECTORIES_H

/*
 * Makes every directory that is missing on the way to the last part of the path. Returns how many it made, or -1 with errno. The
 * string `path` is changed during the call and restored before it returns.
 */
int make_parents(char *path);

#endif
