// Attacks with data that processes send each other: pipes, unix sockets and message queues.
#include "attacks.h"

long pipes(void) {
  static char data[1 << 20];
  for (long made = 0;; made++) {
    int ends[2];
    if (made == 200 || !has_time() || pipe2(ends, O_NONBLOCK) < 0) return made;
    fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
    if (write(ends[1], data, sizeof data) < 0) return made;
  }
}

long unix_queues(void) {
  static char data[150000];
  for (long made = 0;; made++) {
    int pair[2];
    if (made == 1000 || !has_time() || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0) return made;
    send(pair[0], data, sizeof data, MSG_DONTWAIT);
  }
}

long passed_descriptors(void) {
  union {
    struct cmsghdr head;
    char room[CMSG_SPACE(253 * sizeof(int))];
  } control;
  struct iovec byte = {"x", 1};
  for (long made = 0;; made++) {
    int pair[2];
    if (made == 20000 || !has_time() || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0) return made;
    memset(&control, 0, sizeof control);
    control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(253 * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    for (int n = 0; n < 253; n++) ((int *)CMSG_DATA(&control.head))[n] = pair[n & 1];
    struct msghdr message = {.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    while (sendmsg(pair[0], &message, MSG_DONTWAIT) > 0) {}
    if (errno != EAGAIN) return made;
  }
}

long unix_names(void) {
  for (long made = 0;; made++) {
    int one = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "%0100ld", made);
    if (made == 60000 || !has_time() || one < 0 || bind(one, (struct sockaddr *)&name, sizeof name) < 0) return made;
  }
}

long system_v(void) {
  static struct { long type; char text[8000]; } message = {.type = 1};
  for (long made = 0;; made++) {
    if (made == 20000 || !has_time()) return made;
    if (shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600) < 0 && made > 4000) return made;
    semget(IPC_PRIVATE, 250, IPC_CREAT | 0600);
    int queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    if (queue >= 0) msgsnd(queue, &message, sizeof message.text, IPC_NOWAIT);
  }
}

long message_queues(void) {
  char name[32];
  static char text[8192];
  struct mq_attr size = {.mq_maxmsg = 10, .mq_msgsize = sizeof text};
  for (long made = 0;; made++) {
    snprintf(name, sizeof name, "/q%ld", made);
    mqd_t one = mq_open(name, O_CREAT | O_RDWR | O_NONBLOCK, 0600, &size);
    if (made == 3000 || !has_time() || one < 0) return made;
    for (unsigned n = 0; n < 10; n++) mq_send(one, text, sizeof text, n);
  }
}

// Data that `splice` moves from a TCP socket into a pipe no longer counts for the socket. One byte keeps a whole buffer
// of up to 32 KiB, and a pipe can have 256 buffers.
long spliced_buffers(void) {
  int listener = listen_on(2001, 16), from = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(2001), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (listener < 0 || connect(from, (struct sockaddr *)&there, sizeof there) < 0) return 0;
  setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  int to = accept(listener, NULL, NULL);
  static char data[32768];
  for (long made = 0;; made++) {
    int ends[2];
    if (made == 60 || !has_time() || pipe2(ends, O_NONBLOCK) < 0) return made;
    usleep(50000);
    fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
    for (int n = 0; n < 256; n++) {
      if (send(from, data, sizeof data, MSG_DONTWAIT) < 0 && errno != EAGAIN) return made;
      if (splice(to, NULL, ends[1], NULL, 1, SPLICE_F_MOVE | SPLICE_F_NONBLOCK) < 0) break;
      while (recv(to, data, sizeof data, MSG_DONTWAIT) > 0) {}
    }
  }
}
