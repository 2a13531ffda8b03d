/*
 * The numbers of the wire protocol, as PROTOCOL.md describes them. Nothing here does anything.
 */
#ifndef ALCOVE_WIRE_H
#define ALCOVE_WIRE_H

#define FRAME_HEADER 5u             /* u32le size of the payload, u8 kind */
#define FRAME_MAX (1024u * 1024u)   /* payload of one frame, either way */
#define REQUEST_MAX (8u * 1024u * 1024u) /* all frames of one request together */
#define CHUNK 65536u                /* the most that one output frame carries */
#define INPUT_WINDOW (256u * 1024u) /* standard input a peer may send before it is given credit for more */

enum kind {
  KIND_PART = 0x00, /* a piece of a request that is too large for one frame */
  KIND_EXEC = 0x01,
  KIND_DIAL = 0x02,
  KIND_INFO = 0x03,
  KIND_SHUTDOWN = 0x04,

  KIND_STDIN = 0x40,
  KIND_STDIN_END = 0x41,
  KIND_KILL = 0x42,

  KIND_OK = 0x80,
  KIND_FAILED = 0x81,
  KIND_STDOUT = 0x82,
  KIND_STDERR = 0x83,
  KIND_EXIT = 0x84,
  KIND_CREDIT = 0x85,
};

/* Where something failed: the first byte of a FAILED frame; an i32 errno (or 0) follows. */
enum stage {
  STAGE_PROTOCOL = 0, /* the peer sent something that is no request */
  STAGE_USER = 1,
  STAGE_CWD = 2,
  STAGE_EXEC = 3,
  STAGE_CONNECT = 4,
  STAGE_BUSY = 5,   /* a bound was reached; try again later */
  STAGE_ENDING = 6, /* the agent is shutting down */
  STAGE_SYSTEM = 7, /* the kernel refused a pipe, a process, memory */
};

enum exec_flags { EXEC_MERGE_OUTPUT = 1, EXEC_HAS_STDIN = 2 };

#endif
