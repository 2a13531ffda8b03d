// Starts programs and carries out steps for a runner. A large process such as Node needs milliseconds to start a program, and
// does nothing else meanwhile. This small process needs less than a millisecond. It reads questions of the runner from
// descriptor 0, and writes answers to descriptor 1:
//
// question: length | id | flags | seconds | count, 32 bits each; then `count` arguments, each with its NUL; then the input
// answer:   length | id | exit code, or minus the signal | length of output; then the output, then the error output
//
// `length` counts the bytes after it. Input and output are files in memory, so nothing here waits for a reader. A child's output is
// what it had written when it ended; a child that writes too much gets an error.
//
// `serve FILE`: FILE is the cgroup.procs of the runner's cgroup. A move of a process between cgroups takes milliseconds. Just after
// another move, it takes far less. The runner sets the flag `moves_process` in a question whose child will be moved. For a short
// time, a helper process then makes moves without effect, so that the child's move is fast (`keep_warm`). The flag `moves_soon`
// only makes the helper begin early. A question with this flag starts no child and gets no answer.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"

enum { are_steps = 1, moves_process = 2, moves_soon = 4 };
enum { most_children = 256, most_arguments = 4096, question_limit = 4 << 20, output_limit = 32 << 20 };
enum { warm_for_ms = 40, warm_every_ms = 5 };

struct question {
  uint32_t id, flags, seconds, count;
};

struct answer {
  uint32_t length, id;
  int32_t ending;
  uint32_t output_length;
};

struct child {
  pid_t pid;
  uint32_t id;
  int64_t deadline_ms;
  int output, complaints;
};

static struct child children[most_children];
static int child_count;

static _Noreturn void give_up(const char *why) {
  perror(why);
  _exit(failed);
}

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void write_all(int fd, const void *from, size_t length) {
  for (const char *at = from; length > 0;) {
    ssize_t written = write(fd, at, length);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) give_up("write");
    at += written;
    length -= (size_t)written;
  }
}

static int memory_file(void) {
  int fd = memfd_create("alcove", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) give_up("memory file");
  return fd;
}

static int output_file(void) {
  int fd = memory_file();
  if (ftruncate(fd, output_limit) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) < 0) give_up("output file");
  return fd;
}

static _Noreturn void be_child(const struct question *question, char **arg, int input, const struct child *self, pid_t server) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (dup2(input, 0) < 0 || dup2(self->output, 1) < 0 || dup2(self->complaints, 2) < 0) _exit(failed);
  if (question->flags & are_steps) {
    // This child's parent (`server`) ends when the runner ends. The kernel must then kill the child, too. Otherwise the child would
    // go on with its steps while the next runner cleans up.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != server) _exit(failed);
    (void)close_range(3, ~0U, 0);
    run_steps((int)question->count, arg);
    _exit(0);
  }
  execvp(arg[0], arg);
  dprintf(2, "%s: %s\n", arg[0], strerror(errno));
  _exit(127);
}

// Returns the bytes that a child has written. The child and this process share a file offset, which counts the written bytes.
static char *contents(int fd, uint32_t *length) {
  off_t end = lseek(fd, 0, SEEK_CUR);
  if (end < 0) give_up("output");
  *length = (uint32_t)end;
  if (end == 0) return NULL;
  char *mapped = mmap(NULL, (size_t)end, PROT_READ, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) give_up("output");
  return mapped;
}

static void say_ended(struct child *child, int status) {
  uint32_t complaints_length;
  struct answer answer = {.id = child->id, .ending = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status)};
  char *output = contents(child->output, &answer.output_length);
  char *complaints = contents(child->complaints, &complaints_length);
  answer.length = (uint32_t)sizeof answer - 4 + answer.output_length + complaints_length;
  write_all(1, &answer, sizeof answer);
  write_all(1, output, answer.output_length);
  write_all(1, complaints, complaints_length);
  if (output) munmap(output, answer.output_length);
  if (complaints) munmap(complaints, complaints_length);
  close(child->output);
  close(child->complaints);
  *child = children[--child_count];
}

static void start_child(const struct question *question, char **arg, const char *input, size_t input_length) {
  struct child *child = &children[child_count];
  int in = memory_file();
  write_all(in, input, input_length);
  if (lseek(in, 0, SEEK_SET) < 0) give_up("input");
  child->id = question->id;
  child->deadline_ms = now_ms() + (int64_t)question->seconds * 1000;
  child->output = output_file();
  child->complaints = output_file();
  pid_t server = getpid();
  child->pid = fork();
  if (child->pid == 0) be_child(question, arg, in, child, server);
  int why = errno;
  close(in);
  child_count++;
  if (child->pid > 0) return;
  dprintf(child->complaints, "fork: %s\n", strerror(why));
  say_ended(child, failed << 8);
}

static void reap(int signals) {
  struct signalfd_siginfo ignored;
  while (read(signals, &ignored, sizeof ignored) > 0) {}
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    for (int i = 0; i < child_count; i++)
      if (children[i].pid == pid) {
        say_ended(&children[i], status);
        break;
      }
}

// Kills children that are past their deadline. Returns the milliseconds until the next deadline.
static int watch_deadlines(void) {
  int64_t now = now_ms(), next = -1;
  for (int i = 0; i < child_count; i++) {
    int64_t left = children[i].deadline_ms - now;
    if (left <= 0) {
      kill(children[i].pid, SIGKILL);
      continue;
    }
    if (next < 0 || left < next) next = left;
  }
  return (int)next;
}

static void ask_child(char *body, size_t length, int warmer) {
  static char *arg[most_arguments + 1];
  struct question question;
  if (length < sizeof question) give_up("a question is too short");
  memcpy(&question, body, sizeof question);
  if (warmer >= 0 && (question.flags & (moves_process | moves_soon))) (void)!write(warmer, "", 1);
  if (question.flags & moves_soon) return;
  char *at = body + sizeof question, *end = body + length;
  if (question.count == 0 || question.count > most_arguments) give_up("a question has too many arguments, or none");
  for (uint32_t i = 0; i < question.count; i++) {
    char *nul = memchr(at, 0, (size_t)(end - at));
    if (!nul) give_up("an argument has no end");
    arg[i] = at;
    at = nul + 1;
  }
  arg[question.count] = NULL;
  start_child(&question, arg, at, (size_t)(end - at));
}

// Runs the helper process, because a move between cgroups is fast just after another move. Before a child is moved, `serve` writes
// a byte into the pipe `asked`. For `warm_for_ms` after each byte, the helper repeats a move every `warm_every_ms`. This move
// changes nothing: the helper writes `0`, which means itself, into the file cgroup.procs of its own cgroup (`path`).
static _Noreturn void keep_warm(int asked, const char *path) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int file = open(path, O_WRONLY | O_CLOEXEC);
  struct pollfd more = {.fd = asked, .events = POLLIN};
  for (int64_t until = 0;;) {
    int64_t now = now_ms();
    if (poll(&more, 1, now < until ? warm_every_ms : -1) > 0) {
      char bytes[64];
      if (read(asked, bytes, sizeof bytes) <= 0) _exit(0);
      until = now_ms() + warm_for_ms;
    }
    if (file >= 0) (void)!write(file, "0", 1);
  }
}

static int start_warmer(const char *path) {
  int pipe_ends[2];
  if (!path) return -1;
  if (pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) < 0) give_up("pipe");
  pid_t pid = fork();
  if (pid < 0) give_up("fork");
  if (pid > 0) {
    close(pipe_ends[0]);
    return pipe_ends[1];
  }
  close(pipe_ends[1]);
  close(0);
  close(1);
  keep_warm(pipe_ends[0], path);
}

int serve(const char *warm) {
  static char buffer[question_limit];
  size_t filled = 0;
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) give_up("parent");
  int warmer = start_warmer(warm);
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  sigprocmask(SIG_BLOCK, &ended, NULL);
  int signals = signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) give_up("signals");
  for (;;) {
    // While `most_children` children run, read no question: further questions stay in the socket.
    struct pollfd ready[] = {{.fd = signals, .events = POLLIN}, {.fd = child_count < most_children ? 0 : -1, .events = POLLIN}};
    if (poll(ready, 2, watch_deadlines()) < 0 && errno != EINTR) give_up("poll");
    if (ready[0].revents) reap(signals);
    if (ready[1].revents) {
      ssize_t got = read(0, buffer + filled, sizeof buffer - filled);
      if (got <= 0) return 0;
      filled += (size_t)got;
    }
    for (uint32_t length; filled >= 4 && child_count < most_children;) {
      memcpy(&length, buffer, 4);
      if (length > sizeof buffer - 4) give_up("a question is too long");
      if (filled < 4 + (size_t)length) break;
      ask_child(buffer + 4, length, warmer);
      filled -= 4 + (size_t)length;
      memmove(buffer, buffer + 4 + length, filled);
    }
  }
}
