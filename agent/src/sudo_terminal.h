/*
 * The new terminal of a sudo command. The program `sudo` (sudo_client.c) copies bytes between this terminal and the caller's
 * terminal.
 */
#ifndef ALCOVE_SUDO_TERMINAL_H
#define ALCOVE_SUDO_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

struct passage {
  int user;         /* the caller's terminal; -1: there is none */
  int output;       /* a writable descriptor of the caller's terminal */
  int master, slave; /* the command's terminal */
  bool is_raw;      /* the caller's terminal passes every byte on, and its keys belong to the command */
  struct termios modes;
  char typed[4096];
  uint32_t typed_start, typed_end;
};

/* Finds the caller's terminal among descriptors 0, 1 and 2, and makes a terminal for the command. Returns false if this fails. */
bool passage_open(struct passage *);
/* Whether the program `sudo` is in the foreground of its caller's terminal, so that the kernel lets it read keys. */
bool passage_is_foreground(const struct passage *);
void passage_make_raw(struct passage *);
void passage_restore(struct passage *);
void passage_resize(const struct passage *);
/* Each of these functions passes waiting bytes in one direction. It returns false if the side that it reads from has ended. */
bool passage_read_keys(struct passage *);
bool passage_write_keys(struct passage *);
bool passage_show(struct passage *);

#endif
