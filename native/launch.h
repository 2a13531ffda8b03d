// Declarations that launch.c and serve.c share. launch.c reads the steps of a start from its arguments, serve.c from a
// socket.
#pragma once

enum { failed = 125 };

// Runs the steps that the arguments name, such as `overlay OPTIONS PATH`. If a step fails, the process exits with status 125.
void run_steps(int count, char **arg);

// Serves requests from a socket until the other side closes it. `warm`: a file cgroup.procs, to which a helper process writes. The
// kernel then moves other processes between cgroups faster (serve.c). NULL: no helper.
int serve(const char *warm);

// Every step uses these functions. `fail` and `refuse` end the program with one line that names the step. `number` parses a number,
// and refuses any other text.
_Noreturn void fail(const char *about);
_Noreturn void refuse(const char *why);
unsigned long long number(const char *text, int base);

// The steps of disk.c, mounts.c and volumes.c. The arguments of each step are described above its function.
void make_subvolume(char **arg);
void limit_subvolume(char **arg);
void delete_subvolume(char **arg);
void make_snapshot(char **arg);
void remove_tree(char **arg);
void disarm(char **arg);
void forget_file(char **arg);
void enter_private_mounts(char **arg);
void mount_sysfs(char **arg);
void unshare_time(char **arg);
void hide(char **arg);
void mount_overlay(char **arg);
void mount_bind(char **arg);
void make_id_map(char **arg);
void mount_mapped(char **arg);
void resize_shared_memory(char **arg);
void make_read_only(char **arg);
void mount_volume(char **arg);
void check_mount_point(char **arg);

void show_directory(int directory, const char *to);
