/*
 * All operations that a request can name. A start function decodes the whole request before it acts. It answers immediately or, by
 * callbacks on the connection, later.
 */
#ifndef ALCOVE_OPERATIONS_H
#define ALCOVE_OPERATIONS_H

#include "connection.h"

void operation_start(struct connection *, uint8_t kind, struct fields *request);

void exec_start(struct connection *, struct fields *);
void dial_start(struct connection *, struct fields *);
void info_start(struct connection *, struct fields *);
void shutdown_start(struct connection *, struct fields *);

void spawn_start(struct connection *, struct fields *);
void attach_start(struct connection *, struct fields *);
void input_start(struct connection *, struct fields *);
void close_input_start(struct connection *, struct fields *);
void resize_start(struct connection *, struct fields *);
void signal_start(struct connection *, struct fields *);
void list_start(struct connection *, struct fields *);
void remove_start(struct connection *, struct fields *);

void session_open_start(struct connection *, struct fields *);
void session_list_start(struct connection *, struct fields *);
void session_exec_start(struct connection *, struct fields *);
void session_remove_start(struct connection *, struct fields *);
void command_show_start(struct connection *, struct fields *);
void command_attach_start(struct connection *, struct fields *);
void command_input_start(struct connection *, struct fields *);

void file_stat_start(struct connection *, struct fields *);
void file_list_start(struct connection *, struct fields *);
void file_read_start(struct connection *, struct fields *);
void file_write_start(struct connection *, struct fields *);
void file_mkdir_start(struct connection *, struct fields *);
void file_move_start(struct connection *, struct fields *);
void file_remove_start(struct connection *, struct fields *);
void file_permissions_start(struct connection *, struct fields *);
void file_unpack_start(struct connection *, struct fields *);

#endif
