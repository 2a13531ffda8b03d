/* Describes sessions and their commands in frames. */
#ifndef ALCOVE_SESSION_FRAMES_H
#define ALCOVE_SESSION_FRAMES_H

#include "session.h"

/* Writes the payload of a COMMAND frame with at most `text_max` bytes of text. Returns the payload's size, which is below CHUNK. */
uint32_t command_describe(const struct session_command *, uint32_t text_max, uint8_t *payload);
uint32_t session_describe(const struct session *, uint8_t *payload);

#endif
