/* Maps the kind of a request to the function that carries it out. */
#include "operations.h"

#include <errno.h>

#include "shutdown.h"

static const struct {
  uint8_t kind;
  void (*start)(struct connection *, struct fields *);
} table[] = {
    {KIND_EXEC, exec_start},
    {KIND_DIAL, dial_start},
    {KIND_INFO, info_start},
    {KIND_SHUTDOWN, shutdown_start},
    {KIND_SPAWN, spawn_start},
    {KIND_ATTACH, attach_start},
    {KIND_INPUT, input_start},
    {KIND_CLOSE_INPUT, close_input_start},
    {KIND_RESIZE, resize_start},
    {KIND_SIGNAL, signal_start},
    {KIND_LIST, list_start},
    {KIND_REMOVE, remove_start},
    {KIND_SESSION_OPEN, session_open_start},
    {KIND_SESSION_LIST, session_list_start},
    {KIND_SESSION_EXEC, session_exec_start},
    {KIND_SESSION_REMOVE, session_remove_start},
    {KIND_COMMAND_SHOW, command_show_start},
    {KIND_COMMAND_ATTACH, command_attach_start},
    {KIND_COMMAND_INPUT, command_input_start},
    {KIND_FILE_STAT, file_stat_start},
    {KIND_FILE_LIST, file_list_start},
    {KIND_FILE_READ, file_read_start},
    {KIND_FILE_WRITE, file_write_start},
    {KIND_FILE_MKDIR, file_mkdir_start},
    {KIND_FILE_MOVE, file_move_start},
    {KIND_FILE_REMOVE, file_remove_start},
    {KIND_FILE_PERMISSIONS, file_permissions_start},
    {KIND_FILE_UNPACK, file_unpack_start},
};

void operation_start(struct connection *connection, uint8_t kind, struct fields *request) {
  if (shutdown_has_begun() && kind != KIND_SHUTDOWN) {
    connection_fail(connection, STAGE_ENDING, ESHUTDOWN);
    return;
  }
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].kind == kind) {
      table[i].start(connection, request);
      return;
    }
  connection_fail(connection, STAGE_PROTOCOL, ENOSYS);
}
