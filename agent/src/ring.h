/*
 * What a job wrote, by absolute offsets: the last so many bytes, and the first ones if that is asked for, in an unlinked
 * file of the sandbox's own disk.
 *
 * Why a file: its pages are page cache, which the kernel writes back and drops under pressure, where a memfd or an
 * anonymous mapping would count against the sandbox's memory for as long as the job is kept.
 *
 * A full disk has to be an error that we turn into "lost" bytes, and not a SIGBUS that ends PID 1. So the file is written
 * by pwrite, or by a read into a mapping of it that only the kernel touches: where a page cannot be had, that is EFAULT.
 */
#ifndef ALCOVE_RING_H
#define ALCOVE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum origin { FROM_STDOUT = 0, FROM_STDERR = 1, LOST = 2 };

struct ring {
  int fd; /* -1 until the first byte */
  int *shared; /* the file of several rings, in place of one of its own; -1 in there until the first byte */
  uint64_t base; /* where in the file */
  uint32_t capacity;
  uint8_t *map; /* of its part of the file, while something is read into it; never to be looked at */
  uint64_t start, end; /* offsets of the first byte still there, and of the next one to come */
  uint32_t head; /* so many bytes at the beginning are never overwritten */
  uint64_t head_end; /* these are there too: all bytes before this offset */
  uint32_t head_runs; /* the stretches that tell of them are not forgotten */
  /* Where each stretch of one origin starts, in order: offset << 2 | origin. */
  uint64_t *runs;
  uint32_t run_count, run_room;
};

/* `keeps_beginning`: a part of the capacity is for the first bytes, so that a gap is in the middle. */
void ring_open(struct ring *, uint32_t capacity, bool keeps_beginning);
/* Opens a ring in a file that others use too, from this place on, and keeps the beginning. Whoever owns the file closes it. */
void ring_open_in(struct ring *, int *shared, uint64_t base, uint32_t capacity);
void ring_append(struct ring *, enum origin, const uint8_t *bytes, size_t size);
/* Counts bytes that came and that nobody can read. */
void ring_lose(struct ring *, size_t size);
/* Reads at most so many bytes from a pipe and appends them. Answers as read does. */
ssize_t ring_take(struct ring *, enum origin, int pipe, size_t at_most);
/* Nothing more will be taken for a while. */
void ring_rest(struct ring *);
/* How many bytes are there. */
uint64_t ring_held(const struct ring *);
/* The first offset from this one on whose byte is there, or was lost before it could be kept. */
uint64_t ring_next(const struct ring *, uint64_t offset);
/* At most `room` bytes of one origin from an offset that ring_next answers, before the end. For LOST the number only. */
size_t ring_read(const struct ring *, uint64_t offset, uint8_t *into, size_t room, enum origin *);
/* Everything that is there becomes bytes that are lost, and their place on the disk is given back. */
void ring_drop(struct ring *);
void ring_close(struct ring *);

/* A hidden file on the sandbox's disk, or if there is none in memory. -1, with errno: neither. */
int ring_storage(void);

#endif
