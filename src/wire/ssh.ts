// What the SSH gateway says to control and to the gate.
//
// To control it shows a token (`GET /sandbox/ssh-access/validate`). To the gate it opens one WebSocket for each command and for
// each forwarded port, with the token as its bearer:
//
// `/toolbox/{id}/ssh/command`: a command, a shell or a subsystem. The first message is a `CommandStart`. Then binary messages
// carry bytes, text messages the JSON of `ToCommand` and `FromCommand`. Bytes to the command are its input; bytes from it begin
// with the number of their stream. The sender of input may have `inputWindowBytes` unacknowledged; each `credit` allows more.
//
// `/toolbox/{id}/ssh/port?port=N`: a connection to a port on the sandbox's own loopback. Binary messages carry its bytes, and the
// text message `eof` ends one direction.

/** The form of a token. Its letters need no escaping as a user name, in a URL and in a shell. */
export const sshToken = /^ssh_[a-z0-9]{32}$/

/** How many random letters a token has: 165 bits. */
export const sshTokenLetters = 32

/** Paths of the toolbox, with their query, that a token opens and nothing else does. */
export const sshPath = /^\/ssh\/(?:command|port)(?:\?|$)/

export type TerminalSize = { cols: number; rows: number }

export type CommandStart = {
  type: 'start'
  /** `shell`: the login shell of the user. `sftp`: the sftp-server of the image. */
  run: { kind: 'shell' } | { kind: 'exec'; command: string } | { kind: 'sftp' }
  env: Record<string, string>
  /** Absent: the command gets three pipes. */
  terminal?: TerminalSize & { term: string }
}

export type ToCommand = { type: 'eof' } | { type: 'signal'; signal: string } | ({ type: 'resize' } & TerminalSize)

export type FromCommand =
  | { type: 'started' }
  /** The command can take this many further bytes of input. */
  | { type: 'credit'; bytes: number }
  /** The end of the command. `signal`: the name without SIG of the signal that killed it. */
  | { type: 'exit'; code: number; signal?: string }
  /** The command could not be started, or the sandbox ended. */
  | { type: 'failed'; message: string }

export const streamNumbers = { stdout: 1, stderr: 2 } as const

/** Bytes of input that may be under way, to a command and in each direction of a port. */
export const inputWindowBytes = 256 * 1024

/** Maximum of variables of one command, and of the bytes of their names and values. */
export const mostVariables = 64
export const variableBytes = 32 * 1024
export const mostCommandBytes = 256 * 1024
