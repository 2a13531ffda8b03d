/*
 * Limits what the ended commands of a session use: their number, their memory, and their bytes of output on disk. Long command
 * texts move to the disk, and the oldest commands are evicted first. ATTACH reports missing output as lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session.h"

#define OUTPUT_BYTES_MAX (256ull * 1024u * 1024u)
#define COMMANDS_MAX 4096u
#define MEMORY_BYTES_MAX (8u * 1024u * 1024u)
#define SHORT_TEXT 1024u

static off_t text_place(const struct session_command *command) {
  return (off_t)(command->record.ring.base + command->record.ring.capacity);
}

void session_command_settle_text(struct session_command *command) {
  struct session *session = command->session;
  if (command->text_size <= SHORT_TEXT) return;
  if (session->file < 0) session->file = ring_storage();
  ssize_t written = pwrite(session->file, command->text, command->text_size, text_place(command));
  if (written != (ssize_t)command->text_size) return; /* the text stays in memory if it cannot be written */
  free(command->text);
  command->text = NULL;
}

uint8_t *session_command_text(const struct session_command *command) {
  uint8_t *text = malloc(command->text_size + 1);
  if (!text) return NULL;
  if (command->text) memcpy(text, command->text, command->text_size);
  else if (pread(command->session->file, text, command->text_size, text_place(command)) != (ssize_t)command->text_size) {
    free(text);
    errno = EIO;
    return NULL;
  }
  return text;
}

static uint64_t output_bytes(const struct session_command *command) {
  return ring_held(&command->record.ring);
}

static size_t memory_bytes(const struct session_command *command) {
  return sizeof *command + (command->text ? command->text_size : 0) +
         command->record.ring.run_room * sizeof *command->record.ring.runs;
}

/* Deletes the command's stored output and text, and frees their disk space. */
static void drop(struct session_command *command) {
  ring_drop(&command->record.ring);
  if (!command->text)
    fallocate(command->session->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, text_place(command), COMMAND_TEXT_MAX);
}

/* Returns true if the command has ended, has no followers, and none of its processes can write any more. */
static bool is_over(const struct session_command *command) {
  return command->state == COMMAND_ENDED && !command->record.followers && command->output[0].fd < 0 &&
         command->output[1].fd < 0;
}

void session_forget_old(struct session *session) {
  uint64_t output = 0;
  size_t memory = 0;
  for (struct session_command *command = session->commands; command; command = command->next) {
    output += output_bytes(command);
    memory += memory_bytes(command);
  }
  for (struct session_command *command = session->commands; command && output > OUTPUT_BYTES_MAX; command = command->next) {
    if (!is_over(command)) continue;
    output -= output_bytes(command);
    memory -= memory_bytes(command);
    ring_drop(&command->record.ring);
    memory += memory_bytes(command);
  }
  for (struct session_command **link = &session->commands;
       *link && (session->command_count > COMMANDS_MAX || memory > MEMORY_BYTES_MAX);) {
    struct session_command *command = *link;
    if (!is_over(command)) {
      link = &command->next;
      continue;
    }
    memory -= memory_bytes(command);
    drop(command);
    *link = command->next;
    session->command_count--;
    session_command_free(command);
  }
}
