// The two ways to be asked: by arguments (launch.c), or by whoever holds the other end of a socket (serve.c).
#pragma once

enum { failed = 125 };

// Ends the process, with `failed`, at the first step that fails.
void run_steps(int count, char **arg);

// `warm` may be NULL. Returns when there is nobody to be asked by any more.
int serve(const char *warm);
