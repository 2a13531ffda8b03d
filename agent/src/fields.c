/* Little-endian fields, read one by one from untrusted bytes. */
#include "fields.h"

#include <stdlib.h>
#include <string.h>

static uint8_t *take(struct fields *fields, size_t size) {
  if (fields->bad || (size_t)(fields->end - fields->at) < size) {
    fields->bad = true;
    return NULL;
  }
  uint8_t *taken = fields->at;
  fields->at += size;
  return taken;
}

uint32_t get_u32(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint64_t get_u64(const uint8_t *at) { return (uint64_t)get_u32(at) | (uint64_t)get_u32(at + 4) << 32; }

uint8_t take_u8(struct fields *fields) {
  uint8_t *at = take(fields, 1);
  return at ? *at : 0;
}

uint16_t take_u16(struct fields *fields) {
  uint8_t *at = take(fields, 2);
  return at ? (uint16_t)(at[0] | at[1] << 8) : 0;
}

uint32_t take_u32(struct fields *fields) {
  uint8_t *at = take(fields, 4);
  return at ? get_u32(at) : 0;
}

uint64_t take_u64(struct fields *fields) {
  uint8_t *at = take(fields, 8);
  return at ? get_u64(at) : 0;
}

uint8_t *take_bytes(struct fields *fields, uint32_t *size) {
  *size = take_u32(fields);
  return take(fields, *size);
}

char *take_string(struct fields *fields) {
  uint32_t size;
  uint8_t *at = take_bytes(fields, &size);
  uint8_t *end = take(fields, 1);
  if (!end || *end != 0 || memchr(at, 0, size)) {
    fields->bad = true;
    return NULL;
  }
  return (char *)at;
}

char **take_strings(struct fields *fields, uint32_t *count) {
  *count = take_u32(fields);
  /* A string takes at least five bytes. Refuse a count that the request cannot contain, before memory is allocated. */
  if (fields->bad || *count > (size_t)(fields->end - fields->at) / 5) {
    fields->bad = true;
    return NULL;
  }
  char **strings = calloc((size_t)*count + 1, sizeof *strings);
  if (!strings) {
    fields->bad = true;
    return NULL;
  }
  for (uint32_t i = 0; i < *count; i++) strings[i] = take_string(fields);
  if (fields->bad) {
    free(strings);
    return NULL;
  }
  return strings;
}

bool fields_complete(const struct fields *fields) { return !fields->bad && fields->at == fields->end; }

uint8_t *put_u32(uint8_t *at, uint32_t value) {
  for (int i = 0; i < 4; i++) *at++ = (uint8_t)(value >> (8 * i));
  return at;
}

uint8_t *put_u64(uint8_t *at, uint64_t value) { return put_u32(put_u32(at, (uint32_t)value), (uint32_t)(value >> 32)); }

uint8_t *put_string(uint8_t *at, const char *bytes, size_t size) {
  at = put_u32(at, (uint32_t)size);
  memcpy(at, bytes, size);
  at[size] = 0;
  return at + size + 1;
}
