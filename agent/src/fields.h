/*
 * Reads the fields of a request and writes those of an answer. A reader never reads past the end of the request. After an invalid
 * field, the reader is `bad`, and later reads return zeros. So one check after the last field is enough.
 */
#ifndef ALCOVE_FIELDS_H
#define ALCOVE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fields {
  uint8_t *at;
  uint8_t *end;
  bool bad;
};

uint8_t take_u8(struct fields *);
uint16_t take_u16(struct fields *);
uint32_t take_u32(struct fields *);
uint64_t take_u64(struct fields *);
/* Reads a string: its length (u32), its bytes and a NUL. Makes no copy. Returns NULL if the string is invalid or contains a NUL. */
char *take_string(struct fields *);
/* Reads a length (u32) and that many bytes. */
uint8_t *take_bytes(struct fields *, uint32_t *size);
/*
 * Reads a count (u32) and that many strings. Returns a NULL-terminated array that the caller frees; NULL if invalid or out
 * of memory.
 */
char **take_strings(struct fields *, uint32_t *count);
/* Returns true if every field was valid and no byte is left. */
bool fields_complete(const struct fields *);

uint32_t get_u32(const uint8_t *);
uint64_t get_u64(const uint8_t *);
uint8_t *put_u32(uint8_t *, uint32_t);
uint8_t *put_u64(uint8_t *, uint64_t);
/* Writes a string: its length (u32), its bytes and a NUL; in total `4 + size + 1` bytes. */
uint8_t *put_string(uint8_t *, const char *, size_t size);

#endif
