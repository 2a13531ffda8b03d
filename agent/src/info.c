/* INFO: returns the version of the protocol and an identity that changes each time the agent starts. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "operations.h"

#define IDENTITY_BYTES 16

static const char *boot_id(void) {
  static char text[2 * IDENTITY_BYTES + 1];
  if (text[0]) return text;
  unsigned char bytes[IDENTITY_BYTES] = {0};
  if (getrandom(bytes, sizeof bytes, GRND_NONBLOCK) != (ssize_t)sizeof bytes) {
    uint64_t now = now_milliseconds();
    memcpy(bytes, &now, sizeof now);
  }
  for (int i = 0; i < IDENTITY_BYTES; i++) {
    text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
    text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
  }
  return text;
}

void info_start(struct connection *connection, struct fields *request) {
  if (!fields_complete(request)) {
    connection_fail(connection, STAGE_PROTOCOL, EPROTO);
    return;
  }
  uint8_t answer[128];
  uint8_t *end = put_string(answer, ALCOVE_AGENT_VERSION, strlen(ALCOVE_AGENT_VERSION));
  end = put_string(end, boot_id(), 2 * IDENTITY_BYTES);
  connection_send(connection, KIND_OK, answer, (uint32_t)(end - answer));
  connection_end(connection);
}
