/*
 * A ring is a circular file with a list of runs. A run is consecutive output of one stream. So a replay keeps the order in which
 * both streams were read.
 */
#include "ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define RUNS_MAX 32768u /* 256 KiB; streams that alternate more often lose their oldest output sooner */
#define TMPFS 0x01021994
#define TAKE_MAX (256u * 1024u)
#define HEAD_PART 16u /* the beginning gets 1/16 of the capacity */
#define HEAD_RUNS_MAX 1024u /* streams that alternate more often have a shorter stored beginning */

/* Opens a file without a name. Returns -1 with errno, also if the directory is on a file system in memory. */
static int open_hidden(const char *directory) {
  int at = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return -1;
  struct statfs kind;
  int fd = -1;
  if (fstatfs(at, &kind) == 0 && kind.f_type != TMPFS) {
    fd = openat(at, ".", O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
      uint64_t random = 0;
      char name[40];
      if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) random = (uintptr_t)&random;
      snprintf(name, sizeof name, ".alcove-ring-%016llx", (unsigned long long)random);
      fd = openat(at, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0600);
      if (fd >= 0) unlinkat(at, name, 0);
    }
  }
  int reason = fd < 0 ? errno : 0;
  close(at);
  errno = reason;
  return fd;
}

/*
 * Opens a file for output on a disk. If every disk refuses the file, opens it in memory. But if a disk is full, fails: that disk
 * may have room later.
 */
int ring_storage(void) {
  static const char *const directories[] = {"/var/tmp", "/tmp", "/"};
  bool is_full = false;
  for (size_t i = 0; i < 3; i++) {
    int fd = open_hidden(directories[i]);
    if (fd >= 0) return fd;
    is_full |= errno == ENOSPC || errno == EDQUOT;
  }
  if (is_full) errno = ENOSPC;
  return is_full ? -1 : memfd_create("job", MFD_CLOEXEC);
}

void ring_open(struct ring *ring, uint32_t capacity, bool keeps_beginning) {
  *ring = (struct ring){.fd = -1, .capacity = capacity, .head = keeps_beginning ? capacity / HEAD_PART : 0};
}

void ring_open_in(struct ring *ring, int *shared, uint64_t base, uint32_t capacity) {
  ring_open(ring, capacity, true);
  ring->shared = shared;
  ring->base = base;
}

static int file_of(const struct ring *ring) { return ring->shared ? *ring->shared : ring->fd; }

static uint64_t run_start(const struct ring *ring, uint32_t i) { return ring->runs[i] >> 2; }

/*
 * Returns the position in the file for an offset in the output. The first `head` bytes have a fixed position; all others use the
 * rest of the file in a circle.
 */
static uint64_t place_of(const struct ring *ring, uint64_t offset) {
  return offset < ring->head ? offset : ring->head + (offset - ring->head) % (ring->capacity - ring->head);
}

/* Returns how many bytes from this offset on are contiguous in the file. */
static uint64_t beside(const struct ring *ring, uint64_t offset) {
  return (offset < ring->head ? ring->head : ring->capacity) - place_of(ring, offset);
}

/* Drops the oldest runs (bytes of one stream) from the array `runs`. Keeps the runs of the protected beginning of the output. */
static void drop_runs(struct ring *ring, uint32_t count) {
  uint64_t *first = ring->runs + ring->head_runs;
  ring->run_count -= count;
  memmove(first, first + count, (ring->run_count - ring->head_runs) * sizeof *ring->runs);
}

/* Drops the entries of overwritten output from the array `runs`, many at once, because each drop moves the later entries. */
static void forget_before_start(struct ring *ring) {
  uint32_t first = ring->head_runs, last = first;
  while (last + 1 < ring->run_count && run_start(ring, last + 1) <= ring->start) last++;
  if (last - first > ring->run_count / 4) drop_runs(ring, last - first);
}

/*
 * Extends the protected beginning of the output, up to its maximum size. Does nothing once the ring has overwritten the first byte
 * after the protected bytes.
 */
static void grow_head(struct ring *ring) {
  if (ring->start > ring->head_end || ring->head_end == ring->head) return;
  uint32_t runs = ring->head_runs;
  while (runs < ring->run_count && run_start(ring, runs) < ring->head) runs++;
  if (runs > HEAD_RUNS_MAX) {
    ring->head_end = ring->head = (uint32_t)run_start(ring, HEAD_RUNS_MAX);
    runs = HEAD_RUNS_MAX;
  } else {
    ring->head_end = ring->end < ring->head ? ring->end : ring->head;
  }
  ring->head_runs = runs;
}

static bool begin_run(struct ring *ring, enum origin origin) {
  if (ring->run_count && (ring->runs[ring->run_count - 1] & 3u) == origin) return true;
  if (ring->run_count == RUNS_MAX) {
    drop_runs(ring, RUNS_MAX / 4);
    if (ring->start < run_start(ring, ring->head_runs)) ring->start = run_start(ring, ring->head_runs);
  }
  if (ring->run_count == ring->run_room) {
    uint32_t room = ring->run_room ? ring->run_room * 2 : 8;
    uint64_t *runs = realloc(ring->runs, room * sizeof *runs);
    if (!runs) return false;
    ring->runs = runs;
    ring->run_room = room;
  }
  ring->runs[ring->run_count++] = ring->end << 2 | origin;
  return true;
}

static bool store(struct ring *ring, const uint8_t *bytes, size_t size) {
  int *file = ring->shared ? ring->shared : &ring->fd;
  if (*file < 0) *file = ring_storage();
  uint64_t at = ring->end;
  while (size > 0) {
    size_t piece = size < beside(ring, at) ? size : (size_t)beside(ring, at);
    ssize_t written = pwrite(*file, bytes, piece, (off_t)(ring->base + place_of(ring, at)));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    at += (uint64_t)written;
    size -= (size_t)written;
  }
  return true;
}

static void count(struct ring *ring, enum origin origin, bool stored, size_t size) {
  if (!begin_run(ring, stored ? origin : LOST)) {
    /* Without memory for a new entry of the array `runs`, nobody could tell stdout from stderr. So all stored output is dropped. */
    ring->start = ring->end + size;
    ring->run_count = ring->head_runs = 0;
    ring->head_end = 0;
  }
  ring->end += size;
  uint64_t round = ring->capacity - ring->head;
  if (ring->end > ring->capacity && ring->end - ring->start > round) ring->start = ring->end - round;
  grow_head(ring);
  forget_before_start(ring);
}

static void append_piece(struct ring *ring, enum origin origin, const uint8_t *bytes, size_t size) {
  bool stored = store(ring, bytes, size);
  count(ring, origin, stored, size);
}

void ring_append(struct ring *ring, enum origin origin, const uint8_t *bytes, size_t size) {
  while (size > 0) {
    uint64_t most = ring->end < ring->head ? ring->head - ring->end : ring->capacity - ring->head;
    size_t piece = size < most ? size : (size_t)most;
    append_piece(ring, origin, bytes, piece);
    bytes += piece;
    size -= piece;
  }
}

void ring_lose(struct ring *ring, size_t size) { count(ring, LOST, false, size); }

/* Maps `capacity` bytes of the file from the offset `base`, a multiple of the page size. Enlarges the file if it is too short. */
static bool map(struct ring *ring) {
  int *file = ring->shared ? ring->shared : &ring->fd;
  if (*file < 0) *file = ring_storage();
  off_t needed = (off_t)(ring->base + ring->capacity);
  struct stat stat;
  if (*file < 0 || fstat(*file, &stat) < 0 || (stat.st_size < needed && ftruncate(*file, needed) < 0)) return false;
  void *mapped = mmap(NULL, ring->capacity, PROT_READ | PROT_WRITE, MAP_SHARED, *file, (off_t)ring->base);
  if (mapped == MAP_FAILED) return false;
  madvise(mapped, ring->capacity, MADV_DONTFORK); /* no forked child may access it */
  ring->map = mapped;
  return true;
}

ssize_t ring_take(struct ring *ring, enum origin origin, int pipe, size_t at_most) {
  static uint8_t bytes[TAKE_MAX];
  if (at_most > TAKE_MAX) at_most = TAKE_MAX;
  if (ring->map || map(ring)) {
    size_t room = at_most < beside(ring, ring->end) ? at_most : (size_t)beside(ring, ring->end);
    ssize_t got = read(pipe, ring->map + place_of(ring, ring->end), room);
    if (got > 0) count(ring, origin, true, (size_t)got);
    if (got >= 0 || errno != EFAULT) return got;
  }
  ssize_t got = read(pipe, bytes, at_most);
  if (got > 0) ring_append(ring, origin, bytes, (size_t)got);
  return got;
}

void ring_rest(struct ring *ring) {
  if (ring->map) munmap(ring->map, ring->capacity);
  ring->map = NULL;
}

uint64_t ring_held(const struct ring *ring) {
  return ring->end - ring->start + (ring->head_end < ring->start ? ring->head_end : ring->start);
}

uint64_t ring_next(const struct ring *ring, uint64_t offset) {
  return offset < ring->head_end || offset > ring->start ? offset : ring->start;
}

size_t ring_read(const struct ring *ring, uint64_t offset, uint8_t *into, size_t room, enum origin *origin) {
  uint32_t low = 0, high = ring->run_count;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (run_start(ring, middle) <= offset) low = middle;
    else high = middle;
  }
  uint64_t run_end = low + 1 < ring->run_count ? run_start(ring, low + 1) : ring->end;
  if (offset < ring->head_end && ring->head_end < ring->start && run_end > ring->head_end) run_end = ring->head_end;
  uint64_t left = run_end - offset;
  *origin = ring->run_count ? (enum origin)(ring->runs[low] & 3u) : LOST;
  if (*origin == LOST) return (size_t)left;
  if (left > beside(ring, offset)) left = beside(ring, offset);
  if (left > room) left = room;
  ssize_t got = pread(file_of(ring), into, (size_t)left, (off_t)(ring->base + place_of(ring, offset)));
  if (got > 0) return (size_t)got;
  *origin = LOST;
  return (size_t)left;
}

void ring_drop(struct ring *ring) {
  ring->start = ring->end;
  ring->head_end = 0;
  free(ring->runs);
  ring->runs = NULL;
  ring->run_count = ring->run_room = ring->head_runs = 0;
  if (file_of(ring) >= 0)
    fallocate(file_of(ring), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)ring->base, (off_t)ring->capacity);
}

void ring_close(struct ring *ring) {
  ring_rest(ring);
  if (ring->fd >= 0) close(ring->fd);
  free(ring->runs);
  *ring = (struct ring){.fd = -1};
}
