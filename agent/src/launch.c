/*
 * Starts a program in a new process. The process becomes the program's user before it opens the working directory and the program.
 * So the kernel checks the rights of that user.
 */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "setup.h"
#include "user.h"
#include "wire.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define REPORT_FD 3
#define BASE_VARIABLES 6

extern char **environ;

bool program_take(struct program *program, struct fields *request) {
  *program = (struct program){0};
  program->user = take_string(request);
  program->cwd = take_string(request);
  program->argv = take_strings(request, &program->argc);
  program->env = take_strings(request, &program->envc);
  if (!request->bad && program->argc > 0) return true;
  program_free(program);
  return false;
}

void program_free(struct program *program) {
  free(program->argv);
  free(program->env);
  program->argv = program->env = NULL;
}

bool streams_open(bool merge_output, int ours[3], int theirs[3]) {
  int ends[2];
  for (int i = 0; i < 3; i++) {
    if (i == 2 && merge_output) {
      theirs[2] = fcntl(theirs[1], F_DUPFD_CLOEXEC, 4);
      return theirs[2] >= 0;
    }
    if (pipe2(ends, O_CLOEXEC) < 0) return false;
    ours[i] = ends[i == 0 ? 1 : 0];
    theirs[i] = ends[i == 0 ? 0 : 1];
    if (fcntl(ours[i], F_SETFL, O_NONBLOCK) < 0) return false;
    /*
     * Root owns the pipe, but a command of another user may want to open the pipe through /dev/stdout. So the pipe's mode lets all
     * users open it. Still, a process can reach the pipe only through /proc entries that it may read.
     */
    if (fchmod(theirs[i], i == 0 ? 0444 : 0222) < 0) return false;
  }
  return true;
}

void streams_close(int fds[3]) {
  for (int i = 0; i < 3; i++)
    if (fds[i] >= 0) close(fds[i]);
}

_Noreturn static void report_failure(enum stage stage, int error_number) {
  uint8_t payload[5] = {(uint8_t)stage};
  put_u32(payload + 1, (uint32_t)error_number);
  ssize_t written = write(REPORT_FD, payload, sizeof payload);
  _exit(written == (ssize_t)sizeof payload ? 127 : 126);
}

static char *variable(const char *name, const char *value) {
  char *text = NULL;
  if (asprintf(&text, "%s=%s", name, value) < 0) report_failure(STAGE_SYSTEM, ENOMEM);
  return text;
}

static bool is_given(const struct program *program, const char *base) {
  size_t size = strcspn(base, "=") + 1;
  for (uint32_t i = 0; i < program->envc; i++)
    if (strncmp(program->env[i], base, size) == 0) return true;
  return false;
}

static char **environment(const struct program *program, const struct user *user, bool is_terminal) {
  char *base[BASE_VARIABLES] = {variable("HOME", user->home), variable("USER", user->name),
                                variable("LOGNAME", user->name), variable("SHELL", user->shell),
                                variable("PATH", DEFAULT_PATH),  variable("TERM", "xterm-256color")};
  int base_count = is_terminal ? BASE_VARIABLES : BASE_VARIABLES - 1;
  char **all = calloc((size_t)program->envc + BASE_VARIABLES + 1, sizeof *all);
  if (!all) report_failure(STAGE_SYSTEM, ENOMEM);
  size_t count = 0;
  for (int i = 0; i < base_count; i++)
    if (!is_given(program, base[i])) all[count++] = base[i];
  for (uint32_t i = 0; i < program->envc; i++) all[count++] = program->env[i];
  return all;
}

static void enter(const char *cwd, const char *home) {
  bool at_home = chdir(home) == 0;
  if (*cwd == 0 && !at_home) at_home = chdir("/") == 0; /* a missing home is no error unless the caller named it */
  if (*cwd != '/' && !at_home) report_failure(STAGE_CWD, errno);
  if (*cwd != 0 && chdir(cwd) < 0) report_failure(STAGE_CWD, errno);
}

/* Sets PWD to the start directory, as a shell does. */
static void tell_directory(void) {
  char *here = getcwd(NULL, 0);
  if (here && !getenv("PWD")) putenv(variable("PWD", here));
}

_Noreturn static void become_program(const struct program *program, const int streams[3], bool is_terminal, int report) {
  setup_child();
  for (int i = 0; i < 3; i++)
    if (dup2(streams[i], i) < 0) _exit(126);
  if (dup3(report, REPORT_FD, O_CLOEXEC) < 0) _exit(126);
  close_from(REPORT_FD + 1);
  if (is_terminal && ioctl(0, TIOCSCTTY, 0) < 0) report_failure(STAGE_SYSTEM, errno);
  struct user user;
  if (!user_find(&user, program->user)) report_failure(STAGE_USER, errno);
  if (is_terminal && (fchown(0, user.uid, (gid_t)-1) < 0 || fchmod(0, 0620) < 0) && geteuid() == 0)
    report_failure(STAGE_SYSTEM, errno);
  if (!user_become(&user)) report_failure(STAGE_USER, errno);
  environ = environment(program, &user, is_terminal);
  enter(program->cwd, user.home);
  tell_directory();
  execvp(program->argv[0], program->argv);
  report_failure(STAGE_EXEC, errno);
}

pid_t launch(const struct program *program, const int streams[3], bool is_terminal, int *report) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) return -1;
  pid_t pid = fork();
  if (pid == 0) become_program(program, streams, is_terminal, ends[1]);
  int reason = errno;
  close(ends[1]);
  if (pid < 0) close(ends[0]);
  else *report = ends[0];
  errno = reason;
  return pid;
}
