/*
 * The program `sudo` of the sandbox, without rights of its own. It passes its descriptors, directory and environment to the agent,
 * and signals and terminal input to the command. It stops when the command stops, and ends when the command ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "accounts.h"
#include "fields.h"
#include "sudo.h"
#include "sudo_options.h"
#include "sudo_terminal.h"

extern char **environ;

struct client {
  int agent, signals;
  bool has_terminal, reads_keys, in_background;
  struct passage passage;
  uint64_t ignored;
};

_Noreturn static void fail(const char *what) {
  fprintf(stderr, "sudo: %s\n", what);
  exit(1);
}

/* ---- sending the request ---- */

static size_t size_of_list(char **list, uint32_t *count) {
  size_t size = 4;
  for (*count = 0; list && list[*count]; (*count)++) size += 5 + strlen(list[*count]);
  return size;
}

static uint8_t *put_text(uint8_t *at, const char *text) { return put_string(at, text, strlen(text)); }

static uint8_t *put_list(uint8_t *at, char **list, uint32_t count) {
  at = put_u32(at, count);
  for (uint32_t i = 0; i < count; i++) at = put_text(at, list[i]);
  return at;
}

static uint8_t *make_request(const struct client *client, const struct sudo_options *sudo, uint8_t flags, size_t *size) {
  char **lists[4] = {sudo->keep, sudo->variables, sudo->argv, environ};
  const char *texts[3] = {sudo->user, sudo->group, sudo->directory};
  uint32_t counts[4];
  size_t room = 1 + 2 + 8;
  for (int i = 0; i < 3; i++) room += 5 + strlen(texts[i]);
  for (int i = 0; i < 4; i++) room += size_of_list(lists[i], &counts[i]);
  uint8_t *request = room > SUDO_REQUEST_MAX ? NULL : malloc(room), *at = request;
  if (!request) fail("the command and its environment are too long");
  mode_t mask = umask(0);
  *at++ = flags;
  *at++ = (uint8_t)mask;
  *at++ = (uint8_t)(mask >> 8);
  at = put_u64(at, client->ignored);
  for (int i = 0; i < 3; i++) at = put_text(at, texts[i]);
  for (int i = 0; i < 4; i++) at = put_list(at, lists[i], counts[i]);
  *size = (size_t)(at - request);
  return request;
}

/* Opens the working directory through /proc, because the caller may no longer be able to enter the directories above it. */
static int open_directory(void) {
  int fd = open("/proc/self/cwd", O_PATH | O_DIRECTORY | O_CLOEXEC);
  return fd < 0 ? open(".", O_PATH | O_DIRECTORY | O_CLOEXEC) : fd;
}

static int choose_descriptors(const struct client *client, int descriptors[5], uint8_t *which) {
  int count = 0;
  for (int fd = 0; fd <= 2; fd++) descriptors[count++] = client->has_terminal && isatty(fd) ? client->passage.slave : fd;
  *which = 0;
  int directory = open_directory();
  if (directory >= 0) {
    *which |= SUDO_HAS_DIRECTORY;
    descriptors[count++] = directory;
  }
  if (client->has_terminal) {
    *which |= SUDO_HAS_TERMINAL;
    descriptors[count++] = client->passage.slave;
  }
  return count;
}

static void send_all(int fd, const uint8_t *bytes, size_t size) {
  while (size > 0) {
    ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return; /* the agent's answer says why */
    bytes += sent;
    size -= (size_t)sent;
  }
}

static void send_request(const struct client *client, const struct sudo_options *sudo, uint8_t flags) {
  union {
    char bytes[CMSG_SPACE(5 * sizeof(int))];
    struct cmsghdr aligned;
  } control;
  size_t size;
  uint8_t *request = make_request(client, sudo, flags, &size), header[SUDO_HEADER];
  int descriptors[5], count = choose_descriptors(client, descriptors, header);
  put_u32(header + 1, (uint32_t)size);
  struct iovec part = {.iov_base = header, .iov_len = sizeof header};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control};
  memset(&control, 0, sizeof control);
  message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
  memcpy(CMSG_DATA(rights), descriptors, (size_t)count * sizeof(int));
  if (sendmsg(client->agent, &message, MSG_NOSIGNAL) == (ssize_t)sizeof header) send_all(client->agent, request, size);
  free(request);
  if (client->has_terminal) close(client->passage.slave);
}

static int connect_to_agent(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SUDO_SOCKET};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) fail("this sandbox does not offer sudo");
  return fd;
}

/* ---- receiving messages from the agent ---- */

static const char *own_name(void) {
  static char number[16];
  const char *name = account_name("/etc/passwd", (uint32_t)getuid());
  if (*name) return name;
  snprintf(number, sizeof number, "%lu", (unsigned long)getuid());
  return number;
}

static const char *host_name(void) {
  static char name[256];
  if (gethostname(name, sizeof name - 1) < 0) return "this host";
  return name;
}

_Noreturn static void tell_refusal(uint8_t why) {
  if (why == SUDO_NOT_ALLOWED) fprintf(stderr, "%s is not allowed to run sudo on %s.\n", own_name(), host_name());
  else fail(why == SUDO_BUSY ? "too many commands at once" : "the agent did not understand the request");
  exit(1);
}

static void tell(const struct client *client, uint8_t message, uint8_t value) {
  uint8_t both[2] = {message, value};
  send_all(client->agent, both, sizeof both);
}

/* Copies the command's remaining output, then resets the caller's terminal. */
static void leave_terminal(struct client *client) {
  if (!client->has_terminal) return;
  while (passage_show(&client->passage)) continue;
  passage_restore(&client->passage);
}

_Noreturn static void die_of(struct client *client, int number) {
  leave_terminal(client);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0}); /* write no core dump here: if the command has dumped its core, that is enough */
  signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  kill(getpid(), number);
  sigprocmask(SIG_SETMASK, &none, NULL);
  _exit(128 + number);
}

/* ---- stopping when the command stops, and continuing when it continues ---- */

static void go_on(struct client *client) {
  bool foreground = client->has_terminal && client->reads_keys && passage_is_foreground(&client->passage);
  if (foreground) passage_make_raw(&client->passage);
  tell(client, SUDO_CONTINUE, foreground);
}

/*
 * Stops this process. Returns false if the process group is orphaned: the kernel does not stop such a process, as no shell could
 * continue it.
 */
static bool stop_self(int number) {
  sigset_t one, waiting;
  sigemptyset(&one);
  sigaddset(&one, number);
  kill(0, number);
  sigprocmask(SIG_UNBLOCK, &one, NULL);
  sigprocmask(SIG_BLOCK, &one, NULL);
  sigpending(&waiting);
  return number == SIGSTOP || sigismember(&waiting, SIGCONT);
}

static void on_stopped(struct client *client, int number) {
  bool wants_terminal = number == SIGTTIN || number == SIGTTOU;
  if (wants_terminal && client->has_terminal) {
    client->reads_keys = true;
    if (passage_is_foreground(&client->passage)) {
      go_on(client);
      return;
    }
  }
  if (client->has_terminal) passage_restore(&client->passage);
  if (stop_self(number)) return; /* the signal that continues us is handled later */
  if (wants_terminal) tell(client, SUDO_SIGNAL, SIGHUP);
  tell(client, SUDO_CONTINUE, 0);
}

static void on_signal(struct client *client) {
  struct signalfd_siginfo info;
  while (read(client->signals, &info, sizeof info) == (ssize_t)sizeof info) {
    int number = (int)info.ssi_signo;
    if (number == SIGCONT) go_on(client);
    else if (number != SIGWINCH) tell(client, SUDO_SIGNAL, (uint8_t)number);
    else if (client->has_terminal) passage_resize(&client->passage);
  }
}

static void on_message(struct client *client) {
  uint8_t message[2];
  ssize_t got = recv(client->agent, message, sizeof message, MSG_WAITALL);
  if (got < 0 && errno == EINTR) return;
  if (got != sizeof message) {
    leave_terminal(client);
    fail("the command was left without an end");
  }
  switch (message[0]) {
    case SUDO_STARTED:
      if (client->in_background && fork() > 0) _exit(0);
      return;
    case SUDO_STOPPED: on_stopped(client, message[1]); return;
    case SUDO_KILLED: die_of(client, message[1]);
    case SUDO_EXITED:
      leave_terminal(client);
      exit(message[1]);
    default:
      if (client->has_terminal) passage_restore(&client->passage);
      tell_refusal(message[1]);
  }
}

/* ---- running a command ---- */

static uint64_t find_ignored(void) {
  uint64_t ignored = 0;
  struct sigaction action;
  for (int number = 1; number < 64; number++)
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN) ignored |= UINT64_C(1) << (number - 1);
  return ignored;
}

static int watch_signals(uint64_t ignored) {
  static const int passed_on[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM,
                                  SIGTSTP, SIGCONT, SIGWINCH};
  sigset_t set, quiet;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
    if (!(ignored >> (passed_on[i] - 1) & 1)) sigaddset(&set, passed_on[i]);
  quiet = set;
  sigaddset(&quiet, SIGTTIN);
  sigprocmask(SIG_SETMASK, &quiet, NULL);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

_Noreturn static void pass_on(struct client *client) {
  struct passage *passage = &client->passage;
  bool keys_left = client->has_terminal, shows = client->has_terminal;
  for (;;) {
    bool writes = keys_left && passage->typed_start < passage->typed_end;
    bool reads = keys_left && !writes && passage->is_raw;
    struct pollfd all[4] = {
        {.fd = client->signals, .events = POLLIN},
        {.fd = client->agent, .events = POLLIN},
        {.fd = shows || writes ? passage->master : -1, .events = (short)((shows ? POLLIN : 0) | (writes ? POLLOUT : 0))},
        {.fd = reads ? passage->user : -1, .events = POLLIN},
    };
    if (poll(all, 4, -1) < 0) continue;
    if (all[0].revents) on_signal(client);
    if (shows && all[2].revents & (POLLIN | POLLHUP | POLLERR)) shows = passage_show(passage);
    if (writes && all[2].revents & (POLLOUT | POLLHUP | POLLERR)) keys_left = passage_write_keys(passage);
    if (all[3].revents) keys_left = passage_read_keys(passage);
    if (all[1].revents) on_message(client);
  }
}

/* Asks the agent whether the caller may use sudo, and exits. Prints a refusal. Prints a permission only with the option -l. */
static void ask(struct client *client, const struct sudo_options *sudo) {
  uint8_t answer[2];
  send_request(client, sudo, SUDO_ASK);
  if (recv(client->agent, answer, sizeof answer, MSG_WAITALL) != sizeof answer) fail("the agent did not answer");
  if (answer[0] == SUDO_REFUSED) tell_refusal(answer[1]);
  if (!sudo->lists) exit(0);
  printf("User %s may run the following commands on %s:\n    (ALL : ALL) NOPASSWD: ALL\n", own_name(), host_name());
  exit(0);
}

static void fill_standard_streams(void) {
  for (int fd = 0; fd <= 2; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) exit(1);
}

void sudo_client(int argc, char **argv) {
  struct client client = {0};
  struct sudo_options sudo;
  fill_standard_streams();
  sudo_options_read(argc, argv, &sudo);
  bool runs = *sudo.argv || sudo.flags & (SUDO_LOGIN | SUDO_SHELL);
  if (sudo.forgets && !runs && !sudo.validates && !sudo.lists) exit(0);
  bool asks = sudo.lists || sudo.validates;
  if (!runs && !asks) sudo_usage();
  client.agent = connect_to_agent();
  if (asks) ask(&client, &sudo);
  client.ignored = find_ignored();
  client.in_background = sudo.background;
  client.has_terminal = !sudo.background && passage_open(&client.passage);
  /*
   * The command ignores the signals that the caller ignores, except SIGTTIN and SIGTTOU, which bash ignores in $(). The kernel
   * stops a command that needs the terminal by one of these two signals. The function `on_stopped` then begins to pass keys from
   * the caller's terminal to the command.
   */
  if (client.has_terminal) client.ignored &= ~(UINT64_C(1) << (SIGTTIN - 1) | UINT64_C(1) << (SIGTTOU - 1));
  client.signals = watch_signals(client.ignored);
  if (client.signals < 0) fail("no descriptor is left");
  /*
   * In a pipeline, another program may be in the foreground and read what is typed. Then the client reads no keys until the command
   * becomes the foreground job.
   */
  client.reads_keys = client.has_terminal && isatty(0) && isatty(1) && passage_is_foreground(&client.passage);
  send_request(&client, &sudo, sudo.flags | (client.reads_keys ? SUDO_FOREGROUND : 0));
  if (client.reads_keys) passage_make_raw(&client.passage);
  pass_on(&client);
}
