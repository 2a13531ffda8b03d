// The two ways to be asked: by arguments (launch.c), or by whoever holds the other end of a socket (serve.c).
#pragma once

enum { failed = 125 };

// Ends the process, with `failed`, at the first step that fails.
void run_steps(int count, char **arg);

// `warm` may be NULL. Returns when there is nobody to be asked by any more.
int serve(const char *warm);

// What every step uses. A step that fails ends the program with one line that names it.
_Noreturn void fail(const char *about);
_Noreturn void refuse(const char *why);
unsigned long long number(const char *text, int base);

// The steps of disk.c and mounts.c; what each takes stands above it.
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
