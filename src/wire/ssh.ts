// Messages that the SSH gateway sends to control and to the gate. The gateway asks control about an SSH token with
// `GET /sandbox/ssh-access/validate`. For each command and each forwarded port, the gateway opens a WebSocket to the gate, with the
// SSH token as bearer token. There are two paths:
//
// `/toolbox/{id}/ssh/command`: a command, a shell or a subsystem. The gateway first sends a `CommandStart`. Text messages are then
// the JSON of `ToCommand` and `FromCommand`, and binary messages carry bytes. Bytes to the command are its input. Bytes from the
// command begin with the number of their stream (`streamNumbers`). The gateway may send `inputWindowBytes` of input; each `credit`
// of the command allows more.
//
// `/toolbox/{id}/ssh/port?port=N`: a connection to a loopback port of the sandbox. Binary messages carry the connection's bytes.
// The text message `eof` says that its sender will send no more.

/** The form of an SSH token. A token needs no escaping as a user name, in a URL or in a shell. */
export const sshToken = /^ssh_[a-z0-9]{32}$/

/** Number of random characters in an SSH token. Together, these characters contain 165 random bits. */
export const sshTokenLetters = 32

/** Toolbox paths, with their query, that only an SSH token opens. An SSH token opens no other paths. */
export const sshPath = /^\/ssh\/(?:command|port)(?:\?|$)/

export type TerminalSize = { cols: number; rows: number }

export type CommandStart = {
  type: 'start'
  /** `shell`: the login shell of the user. `sftp`: the sftp-server of the image. */
  run: { kind: 'shell' } | { kind: 'exec'; command: string } | { kind: 'sftp' }
  env: Record<string, string>
  /** The command's terminal. Absent: the command has no terminal, and its input, output and errors are three pipes. */
  terminal?: TerminalSize & { term: string }
}

export type ToCommand = { type: 'eof' } | { type: 'signal'; signal: string } | ({ type: 'resize' } & TerminalSize)

export type FromCommand =
  | { type: 'started' }
  /** Allows the gateway to send `bytes` more bytes of input to the command. */
  | { type: 'credit'; bytes: number }
  /** The command has ended. `signal`: the name, without `SIG`, of the signal that killed the command. */
  | { type: 'exit'; code: number; signal?: string }
  /** The command could not be started, or the sandbox ended. */
  | { type: 'failed'; message: string }

export const streamNumbers = { stdout: 1, stderr: 2 } as const

/** Maximum bytes that are sent but not yet accepted: input of a command, or data in one direction of a port's connection. */
export const inputWindowBytes = 256 * 1024

/** Maximum number of environment variables of one command. */
export const mostVariables = 64
/** Maximum number of bytes of all names and values of a command's variables together. */
export const variableBytes = 32 * 1024
export const mostCommandBytes = 256 * 1024
