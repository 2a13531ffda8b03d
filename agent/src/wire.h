/* The numbers of the wire protocol, as PROTOCOL.md describes them. */
#ifndef ALCOVE_WIRE_H
#define ALCOVE_WIRE_H

#define FRAME_HEADER 5u             /* u32le size of the payload, u8 kind */
#define FRAME_MAX (1024u * 1024u)   /* maximum payload of one frame, in both directions */
#define REQUEST_MAX (8u * 1024u * 1024u) /* maximum size of all frames of one request together */
#define CHUNK 65536u                /* maximum payload of one output frame */
#define LONG_CHUNK (256u * 1024u)   /* maximum payload of one frame of stored output, of which there may be much */
#define INPUT_WINDOW (256u * 1024u) /* standard input that a peer may send before a frame CREDIT allows more */

enum kind {
  KIND_PART = 0x00, /* a piece of a request that is too large for one frame */
  KIND_EXEC = 0x01,
  KIND_DIAL = 0x02,
  KIND_INFO = 0x03,
  KIND_SHUTDOWN = 0x04,
  KIND_SPAWN = 0x05,
  KIND_ATTACH = 0x06,
  KIND_INPUT = 0x07,
  KIND_CLOSE_INPUT = 0x08,
  KIND_RESIZE = 0x09,
  KIND_SIGNAL = 0x0a,
  KIND_LIST = 0x0b,
  KIND_REMOVE = 0x0c,

  KIND_FILE_STAT = 0x20,
  KIND_FILE_LIST = 0x21,
  KIND_FILE_READ = 0x22,
  KIND_FILE_WRITE = 0x23,
  KIND_FILE_MKDIR = 0x24,
  KIND_FILE_MOVE = 0x25,
  KIND_FILE_REMOVE = 0x26,
  KIND_FILE_PERMISSIONS = 0x27,
  KIND_FILE_UNPACK = 0x28,

  KIND_SESSION_OPEN = 0x30,
  KIND_SESSION_LIST = 0x31,
  KIND_SESSION_EXEC = 0x32,
  KIND_SESSION_REMOVE = 0x33,
  KIND_COMMAND_SHOW = 0x34,
  KIND_COMMAND_ATTACH = 0x35,
  KIND_COMMAND_INPUT = 0x36,

  KIND_STDIN = 0x40,
  KIND_STDIN_END = 0x41,
  KIND_KILL = 0x42,

  KIND_OK = 0x80,
  KIND_FAILED = 0x81,
  KIND_STDOUT = 0x82,
  KIND_STDERR = 0x83,
  KIND_EXIT = 0x84,
  KIND_CREDIT = 0x85,
  KIND_LOST = 0x86, /* u64: number of output bytes that are lost */
  KIND_JOB = 0x87,
  KIND_END = 0x88,
  KIND_ENTRY = 0x89,
  KIND_SESSION = 0x8a,
  KIND_COMMAND = 0x8b,
  KIND_TEXT = 0x8c,
};

/* Where a failure happened: the first byte of a FAILED frame. An i32 errno (or 0) follows. */
enum stage {
  STAGE_PROTOCOL = 0, /* the peer sent an invalid request */
  STAGE_USER = 1,
  STAGE_CWD = 2,
  STAGE_EXEC = 3,
  STAGE_CONNECT = 4,
  STAGE_BUSY = 5,   /* a limit was reached; try again later */
  STAGE_ENDING = 6, /* the agent is shutting down */
  STAGE_SYSTEM = 7, /* the kernel refused a pipe, a process or memory */
  STAGE_JOB = 8,    /* ENOENT: no such job; EEXIST: the job exists; ESRCH: the job has ended; EPIPE: its input is closed */
  STAGE_FILE = 9,   /* errno of the kernel; EINVAL: neither a file nor a directory */
};

enum exec_flags { EXEC_MERGE_OUTPUT = 1, EXEC_HAS_STDIN = 2 };
enum spawn_flags { SPAWN_TERMINAL = 1, SPAWN_KEEP_INPUT = 2, SPAWN_KEEP_FAILED = 4, SPAWN_KEEP_BEGINNING = 8, SPAWN_FLAGS = 15 };
enum job_state { JOB_STARTING = 0, JOB_RUNNING = 1, JOB_ENDED = 2 };

enum session_flags { SESSION_BASH = 1 };
enum command_flags { COMMAND_KEEP_INPUT = 1, COMMAND_ECHO_INPUT = 2, COMMAND_FLAGS = 3, EXEC_FOLLOWS = 4 };
enum input_flags { INPUT_CLOSE = 1 };
enum command_state { COMMAND_WAITING = 0, COMMAND_RUNNING = 1, COMMAND_ENDED = 2 };
enum how { EXITED = 0, KILLED = 1, NEVER_RAN = 2 }; /* NEVER_RAN: only for a command of a session */

#define SESSION_ID_MAX 1024u
#define COMMAND_TEXT_MAX (1024u * 1024u)
#define TEXT_IN_LIST_MAX 4096u

#define KEEP_MODE 0xffffffffu
enum write_flags { WRITE_PARENTS = 1 };

#define JOB_ID_MAX 64u
#define JOB_METADATA_MAX 4096u
#define RING_MIN 4096u
#define RING_MAX (256u * 1024u * 1024u)

#endif
