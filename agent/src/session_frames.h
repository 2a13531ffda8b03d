/*
 * How sessions and their commands are told to the peer.
 */
#ifndef ALCOVE_SESSION_FRAMES_H
#define ALCOVE_SESSION_FRAMES_H

#include "session.h"

/* The payload of a COMMAND frame, with at most so much of its text; answers its size, less than a CHUNK. */
uint32_t command_describe(const struct session_command *, uint32_t text_max, uint8_t *payload);
uint32_t session_describe(const struct session *, uint8_t *payload);

#endif
