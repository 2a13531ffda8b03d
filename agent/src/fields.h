/*
 * Reading the fields of a request, and writing those of an answer. A reader never runs past its end: it turns bad and
 * answers zeros, and the caller asks once, when it has taken everything, whether all was well.
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
/* u32 length, the bytes, a NUL: used where it lies. NULL when bad, or when there is a NUL inside. */
char *take_string(struct fields *);
/* u32 length, the bytes. */
uint8_t *take_bytes(struct fields *, uint32_t *size);
/* u32 count, then strings. A NULL-terminated array to be freed; NULL when bad or out of memory. */
char **take_strings(struct fields *, uint32_t *count);
/* True when every field was there and nothing is left over. */
bool fields_complete(const struct fields *);

uint32_t get_u32(const uint8_t *);
uint64_t get_u64(const uint8_t *);
uint8_t *put_u32(uint8_t *, uint32_t);
uint8_t *put_u64(uint8_t *, uint64_t);
/* u32 length, the bytes, a NUL: `4 + size + 1` bytes. */
uint8_t *put_string(uint8_t *, const char *, size_t size);

#endif
