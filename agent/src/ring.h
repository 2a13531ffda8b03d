/*
 * A ring stores the output of a job: the last bytes and, if requested, the first bytes. A byte is found by its offset in the whole
 * output. A ring is an unlinked file on the sandbox's disk. If memory is short, the kernel can drop the file's pages. A ring in
 * memory would count as the sandbox's memory for as long as the job exists.
 *
 * If the disk is full, the agent (PID 1) loses output and continues. A write to a mapping of the file could end the agent by a
 * SIGBUS. So the agent calls pwrite, or lets the kernel read into the mapping. If a page gets no disk space, the kernel then
 * returns EFAULT.
 */
#ifndef ALCOVE_RING_H
#define ALCOVE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum origin { FROM_STDOUT = 0, FROM_STDERR = 1, LOST = 2 };

struct ring {
  int fd; /* the ring's file; -1 until the first byte */
  int *shared; /* a file shared by several rings, in place of `fd`; -1 until the first byte */
  uint64_t base; /* offset of this ring in the file */
  uint32_t capacity;
  uint8_t *map; /* mapping of the ring's part of the file while a read fills it; never accessed otherwise */
  uint64_t start, end; /* offsets of the first stored byte and of the next byte to come */
  uint32_t head; /* number of bytes at the beginning that are never overwritten */
  uint64_t head_end; /* all bytes before this offset are stored as the beginning */
  uint32_t head_runs; /* number of runs that describe the beginning and are never dropped */
  /* The start of each run, in order: offset << 2 | origin. A run is consecutive bytes of one origin (stdout, stderr or LOST). */
  uint64_t *runs;
  uint32_t run_count, run_room;
};

/* Opens a ring. If `keeps_beginning` is true, a part of the capacity keeps the first bytes, so that only later output is lost. */
void ring_open(struct ring *, uint32_t capacity, bool keeps_beginning);
/*
 * Opens a ring in a file that several rings share. The ring's part of the file begins at the offset `base`. A part of the capacity
 * keeps the first bytes of the output, as with `keeps_beginning` of `ring_open`. The file's owner closes the file; ring_close does
 * not.
 */
void ring_open_in(struct ring *, int *shared, uint64_t base, uint32_t capacity);
void ring_append(struct ring *, enum origin, const uint8_t *bytes, size_t size);
/* Adds to the number of bytes that arrived but cannot be read any more. */
void ring_lose(struct ring *, size_t size);
/* Reads at most `at_most` bytes from a pipe and appends them to the ring. Returns the same values as read(2). */
ssize_t ring_take(struct ring *, enum origin, int pipe, size_t at_most);
/* Unmaps the file. The file keeps the data. Call this if no more data is expected for a while. */
void ring_rest(struct ring *);
/* Number of stored bytes. */
uint64_t ring_held(const struct ring *);
/*
 * Returns the first offset, from `offset` on, that ring_read can read. Skips overwritten and dropped bytes. Does not skip bytes
 * that could not be stored, because ring_read reports them as LOST.
 */
uint64_t ring_next(const struct ring *, uint64_t offset);
/*
 * Reads at most `room` bytes from an offset that ring_next returned. All are from stdout, all from stderr, or all LOST. Returns
 * their number. LOST bytes are not stored. So they are only counted, even if they are more than `room`.
 */
size_t ring_read(const struct ring *, uint64_t offset, uint8_t *into, size_t room, enum origin *);
/* Turns all stored bytes into lost bytes and frees their disk space. */
void ring_drop(struct ring *);
void ring_close(struct ring *);

/*
 * Opens a file without a name on the sandbox's disk, or in memory if no disk can be used. Returns -1 with errno if a disk is full.
 */
int ring_storage(void);

#endif
