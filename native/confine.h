// Functions that confine.c and filter.c share.
_Noreturn void fail(const char *about);
_Noreturn void refuse(const char *why);

// Installs the system call filter (filter.c).
void filter_system_calls(const char *sockets, const char *processes);
