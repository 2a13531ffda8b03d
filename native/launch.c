// Carries out the steps of one sandbox start, such as mounts, and then becomes the OCI runtime. One process does all steps, because
// each process that Node spawns takes more time than all steps.
//
//   launch STEP ARGUMENTS… STEP ARGUMENTS… [exec PROGRAM ARGUMENTS…]
//   launch serve [FILE]: see serve.c
//
// Every step is safe to repeat. If a step fails, the program exits with 125 and one line on standard error that names the step.
// `runner/launch.ts` is the only caller; no argument comes from inside a sandbox.
//
// The steps are in disk.c, mounts.c, volumes.c and this file, which has the table of all steps.
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "launch.h"

enum { inherited_socket = 3, backlog = 1024 };

static const char *current_step = "arguments";
static int complaints = STDERR_FILENO;

_Noreturn void fail(const char *about) {
  dprintf(complaints, "%s: %s (%s)\n", current_step, strerror(errno), about);
  _exit(failed);
}

_Noreturn void refuse(const char *why) {
  dprintf(complaints, "%s: %s\n", current_step, why);
  _exit(failed);
}

unsigned long long number(const char *text, int base) {
  char *end;
  errno = 0;
  unsigned long long value = strtoull(text, &end, base);
  if (errno || end == text || *end) refuse("not a number");
  return value;
}

// rename FROM TO: renames a file or directory; replaces an existing file.
static void rename_to(char **arg) {
  if (rename(arg[0], arg[1]) < 0) fail(arg[1]);
}

// sync PATH: when this returns, a file's contents, or a directory's names, survive a power cut.
static void sync_to_disk(char **arg) {
  int fd = open(arg[0], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 || fsync(fd) < 0) fail(arg[0]);
  close(fd);
}

// directory PATH OWNER MODE: makes a directory. An interrupted start may have made it already. Only for a disk that no sandbox has
// used yet.
static void make_directory(char **arg) {
  uid_t owner = (uid_t)number(arg[1], 10);
  mode_t mode = (mode_t)number(arg[2], 8);
  if (mkdir(arg[0], 0700) < 0 && errno != EEXIST) fail(arg[0]);
  if (chown(arg[0], owner, owner) < 0 || chmod(arg[0], mode) < 0) fail(arg[0]);
}

// Whether a file already has exactly this text, owner and mode, so that it need not be written.
static int is_as_wanted(const char *path, uid_t owner, const char *text, size_t length) {
  char there[8192];
  struct stat found;
  if (length >= sizeof there) return 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return 0;
  int is_so = fstat(fd, &found) == 0 && found.st_mode == (S_IFREG | 0644) && found.st_uid == owner && found.st_gid == owner &&
              read(fd, there, sizeof there) == (ssize_t)length && memcmp(there, text, length) == 0;
  close(fd);
  return is_so;
}

// file PATH OWNER TEXT: writes a file, unless it is right already: reading is much faster. No sandbox can reach the directory of
// PATH.
static void write_file(char **arg) {
  uid_t owner = (uid_t)number(arg[1], 10);
  size_t length = strlen(arg[2]);
  if (is_as_wanted(arg[0], owner, arg[2], length)) return;
  int fd = open(arg[0], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) fail(arg[0]);
  if (write(fd, arg[2], length) != (ssize_t)length) fail(arg[0]);
  if (fchown(fd, owner, owner) < 0 || fchmod(fd, 0644) < 0) fail(arg[0]);
  close(fd);
}

// new-file PATH OWNER TEXT: writes a file only if it is missing or empty. An empty file may remain after a power cut.
static void write_new_file(char **arg) {
  struct stat found;
  if (stat(arg[0], &found) < 0 || found.st_size == 0) write_file(arg);
}

// listen PATH GID: opens the socket that PID 1 gets as descriptor 3. The socket accepts connections from now on, so no client waits
// for PID 1. The group GID may connect. Only root can write to PATH's directory, so nobody can replace the socket.
static void listen_at(char **arg) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(arg[0]) >= sizeof address.sun_path) refuse("the path of the socket is too long");
  strcpy(address.sun_path, arg[0]);
  if (unlink(arg[0]) < 0 && errno != ENOENT) fail(arg[0]);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) fail(arg[0]);
  mode_t before = umask(0177);
  if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, backlog) < 0) fail(arg[0]);
  umask(before);
  if (chown(arg[0], 0, (gid_t)number(arg[1], 10)) < 0 || chmod(arg[0], 0660) < 0) fail(arg[0]);
  if (fd == inherited_socket) {
    if (fcntl(fd, F_SETFD, 0) < 0) fail(arg[0]);
  } else {
    if (dup2(fd, inherited_socket) < 0) fail(arg[0]);
    close(fd);
  }
}

// child-of PID: makes the kernel kill this process when the runner ends. The kernel does this even after this process has become
// the OCI runtime. Otherwise this start could continue while the next runner cleans up.
static void die_with(char **arg) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) fail("parent");
  if ((unsigned long long)getppid() != number(arg[0], 10)) refuse("the runner is gone");
}

// Raises a limit on timers or message queues, which one sandbox could otherwise use up for all. The kernel counts all sandboxes
// together, because one user creates their user namespaces. Without CAP_SYS_RESOURCE, raises the limit only to the hard limit.
static void raise_shared_limit(int resource) {
  struct rlimit most = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  if (setrlimit(resource, &most) == 0 || getrlimit(resource, &most) < 0) return;
  most.rlim_cur = most.rlim_max;
  (void)setrlimit(resource, &most);
}

// Gives this program a high out-of-memory score, which the runtime and the sandbox inherit. When the host's memory is full, the
// kernel therefore kills sandboxes first. If this program has CAP_SYS_RESOURCE, the sandbox cannot lower the score.
static void stand_first_in_line(void) {
  const char score[] = "200";
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, score, sizeof score - 1) < 0) fail("oom_score_adj");
  close(fd);
}

// exec PROGRAM ARGUMENTS…: the last step. The program inherits the socket of the step `listen` and no other descriptor.
static _Noreturn void become(char **arg) {
  int quiet = open("/dev/null", O_RDWR | O_CLOEXEC);
  int spare = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
  if (quiet < 0 || spare < 0) fail("/dev/null");
  complaints = spare;
  for (int fd = 0; fd <= STDERR_FILENO; fd++)
    if (dup2(quiet, fd) < 0) fail("/dev/null");
  stand_first_in_line();
  raise_shared_limit(RLIMIT_SIGPENDING);
  raise_shared_limit(RLIMIT_MSGQUEUE);
  // Close all other descriptors that this program has inherited, so that the runtime does not get them.
  (void)close_range(inherited_socket + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  execvp(arg[0], arg);
  fail(arg[0]);
}

static const struct step {
  const char *name;
  int arguments;
  void (*run)(char **arg);
} steps[] = {
    {"child-of", 1, die_with},
    {"subvolume", 1, make_subvolume},
    {"limit", 2, limit_subvolume},
    {"delete-subvolume", 1, delete_subvolume},
    {"snapshot", 2, make_snapshot},
    {"remove-tree", 1, remove_tree},
    {"forget-file", 2, forget_file},
    {"disarm", 3, disarm},
    {"rename", 2, rename_to},
    {"sync", 1, sync_to_disk},
    {"directory", 3, make_directory},
    {"file", 3, write_file},
    {"new-file", 3, write_new_file},
    {"listen", 2, listen_at},
    {"private", 0, enter_private_mounts},
    {"sysfs", 2, mount_sysfs},
    {"own-time", 0, unshare_time},
    {"hide", 1, hide},
    {"overlay", 2, mount_overlay},
    {"bind", 2, mount_bind},
    {"ids", 1, make_id_map},
    {"bind-mapped", 2, mount_mapped},
    {"volume", 4, mount_volume},
    {"mount-point", 2, check_mount_point},
    {"shm", 2, resize_shared_memory},
    {"read-only", 1, make_read_only},
};

static const struct step *find_step(const char *name) {
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
    if (!strcmp(steps[i].name, name)) return &steps[i];
  refuse("no such step");
}

void run_steps(int count, char **arg) {
  umask(022);
  for (int at = 0; at < count;) {
    current_step = arg[at++];
    if (!strcmp(current_step, "exec")) {
      if (at == count) refuse("nothing to become");
      become(arg + at);
    }
    const struct step *step = find_step(current_step);
    if (at + step->arguments > count) refuse("too few arguments");
    step->run(arg + at);
    at += step->arguments;
  }
}

int main(int count, char **arg) {
  if (count > 1 && !strcmp(arg[1], "serve")) return serve(arg[2]);
  run_steps(count - 1, arg + 1);
  return 0;
}
