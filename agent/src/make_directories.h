/*
 * Makes directories with their missing parents, like mkdir -p.
 */
#ifndef ALCOVE_MAKE_DIRECTORIES_H
#define ALCOVE_MAKE_DIRECTORIES_H

/* Makes all missing parent directories of the path. Returns how many it made, or -1 with errno. `path` changes during the call. */
int make_parents(char *path);

#endif
