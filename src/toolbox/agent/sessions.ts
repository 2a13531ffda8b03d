// Sessions: shells of the agent, each with a queue of commands and their output. The gate stores no state of sessions, so a restart
// of the gate loses nothing.
import { jsonBytes } from '#src/kit/json-size.ts'
import { asStartFailed, type CommandSpec, type Exit, readExit, writeProgram } from './command.ts'
import { Connection } from './connection.ts'
import { BadFrame, FieldReader, FieldWriter, type Frame, kinds } from './frames.ts'
import { type AttachOptions, followOutput, followRequest, type OutputEvent } from './jobs.ts'
import { pourOutput, type TakePiece } from './pour-output.ts'

export type SessionSpec = Pick<CommandSpec, 'env' | 'cwd' | 'user'> & {
  /** Id of the session, chosen by the caller: 1 to 1024 bytes without a NUL. */
  id: string
  shell: 'bash' | 'sh'
  /** Maximum number of output bytes that are stored per command: 4 KiB to 256 MiB, on the sandbox's disk. */
  ringBytes: number
}

export type SessionCommandSpec = {
  /** Id of the command, chosen by the caller: 1 to 64 printable ASCII characters without space. */
  id: string
  /** Text of the command: at most 1 MiB, without a NUL. */
  text: string
  /** Leaves the standard input open for calls of `input`. Default: the input is empty. */
  keepInput: boolean
  /** Whether bytes that `input` sends are also stored as output of the command. */
  echoInput: boolean
}

/** The end of a command. `null`: the command never ran, because the session ended first or the command could not be started. */
export type CommandEnd = Exit | null

export type SessionCommand = {
  id: string
  state: 'waiting' | 'running' | 'ended'
  /** The end of the command. `null` while the command waits or runs, and for a command that never ran. */
  end: CommandEnd
  startOffset: number
  endOffset: number
  createdAt: Date
  endedAt: Date | null
  /** The command text; in a list only its beginning. */
  text: string
  isWholeText: boolean
}

export type AgentSession = {
  id: string
  state: 'starting' | 'running' | 'ended'
  pid: number
  exit: Exit | null
  createdAt: Date
  commands: SessionCommand[]
}

export type CommandEvent = OutputEvent | { type: 'exit'; end: CommandEnd }

/**
 * Sessions of one sandbox. Refusals are `AgentRefused` with stage `job`. ENOENT: no such session. ESRCH: no such command. EEXIST:
 * the id is in use. EPIPE: the session has ended. EALREADY: the command has ended. ENOTTY: the command takes no input.
 */
export interface Sessions {
  /** Opens a session. Throws `StartFailed` like `exec`. */
  open(spec: SessionSpec): Promise<{ pid: number }>
  list(): Promise<AgentSession[]>
  get(id: string): Promise<AgentSession>
  /** Deletes a session: sends SIGTERM to all its processes, and SIGKILL after 5 s. The id can be used again immediately. */
  remove(id: string): Promise<void>
  /** Adds a command to the end of the session's queue. */
  exec(sessionId: string, spec: SessionCommandSpec): Promise<void>
  /** Runs a command and yields its output from the first byte. The command continues if the caller stops reading. */
  execAndFollow(
    sessionId: string,
    spec: SessionCommandSpec,
    options?: Pick<AttachOptions, 'onTaken' | 'signal'>,
  ): AsyncGenerator<CommandEvent, void, void>
  command(sessionId: string, commandId: string): Promise<SessionCommand>
  attach(
    sessionId: string,
    commandId: string,
    offset: number,
    options?: AttachOptions,
  ): AsyncGenerator<CommandEvent, void, void>
  /**
   * Passes the command's output to `take` in order, without a copy. The next read waits until `take` has consumed the last piece.
   * Settles after all output, or when `signal` is aborted.
   */
  pour(
    sessionId: string,
    commandId: string,
    take: TakePiece,
    options: { follow: boolean; signal: AbortSignal },
  ): Promise<void>
  /** Writes to the command's input. Settles when the agent has received the bytes. The bytes of several calls stay in order. */
  input(sessionId: string, commandId: string, data: Uint8Array, options?: { close?: boolean }): Promise<void>
}

const neverRan = 2
const sessionStates = ['starting', 'running', 'ended'] as const
const commandStates = ['waiting', 'running', 'ended'] as const
const named = (...ids: string[]): FieldWriter => ids.reduce((fields, id) => fields.string(id), new FieldWriter())

const readEnd = (payload: Buffer): { type: 'exit'; end: CommandEnd } => ({
  type: 'exit',
  end: payload[0] === neverRan ? null : readExit(payload),
})

const takeExit = (fields: FieldReader): Buffer => Buffer.from([...Array(5)].map(() => fields.u8()))
const unlessNever = (time: Date): Date | null => (time.getTime() === 0 ? null : time)

const readSession = (payload: Buffer): AgentSession => {
  const fields = new FieldReader(payload)
  const id = fields.string()
  const state = fields.word(sessionStates)
  const pid = fields.u32()
  const exit = readExit(takeExit(fields))
  const createdAt = fields.time()
  fields.end()
  return { id, state, pid, exit: state === 'ended' ? exit : null, createdAt, commands: [] }
}

/** Decodes the agent's description of a command. Keeps at most `most` bytes of the command's text. */
const readCommand = (payload: Buffer, most = textInList): { command: SessionCommand; textBytes: number } => {
  const fields = new FieldReader(payload)
  const id = fields.string()
  const state = fields.word(commandStates)
  const { end } = readEnd(takeExit(fields))
  const [startOffset, endOffset] = [fields.u64(), fields.u64()]
  const [createdAt, endedAt] = [fields.time(), unlessNever(fields.time())]
  const textBytes = fields.u32()
  const beginning = fields.bytes().subarray(0, most)
  fields.end()
  const isWholeText = beginning.length === textBytes
  // If the text was shortened, the option `stream` makes the decoder omit an incomplete character at the end.
  const text = new TextDecoder().decode(beginning, { stream: !isWholeText })
  return {
    command: {
      ...{ id, state, end: state === 'ended' ? end : null, startOffset, endOffset },
      ...{ createdAt, endedAt, text, isWholeText },
    },
    textBytes,
  }
}

/**
 * Maximum number of sessions in a list, and of commands per session. `commandsMax` is above the agent's own limit of
 * 4096 commands.
 */
const sessionsMax = 1024
const commandsMax = 16_384
/** Maximum size of a frame that describes a session or a command, in bytes. */
const frameBytes = 8 * 1024
const textInList = 4096
const commandTextBytes = 1024 * 1024
/** After `plentyBytes` of a list, further command texts are cut to `textInLongList` bytes. Above `listBytes` a list is refused. */
const plentyBytes = 4 * 1024 * 1024
const textInLongList = 200
const listBytes = 16 * 1024 * 1024
/** Estimated size in JSON of a session, or of a command without its text, in bytes. */
const bytesOfOne = 200

/** Thrown if all sessions together are too long for one list. The caller can ask for each session instead. */
export class ListTooLong extends Error {
  override name = 'ListTooLong'
}

async function* framesOf(socketPath: string, kind: number, body: Buffer): AsyncGenerator<Frame, void, void> {
  const [connection] = await Connection.request(socketPath, kind, body)
  try {
    for (;;) {
      const frame = await connection.nextSoon()
      if (frame.kind === kinds.end) return
      yield frame
    }
  } finally {
    connection.close()
  }
}

const list = async (socketPath: string, id: string): Promise<AgentSession[]> => {
  const sessions: AgentSession[] = []
  let bytes = 0
  for await (const { kind, payload } of framesOf(socketPath, kinds.sessionList, named(id).done())) {
    const last = sessions.at(-1)
    if (payload.length > frameBytes) throw new BadFrame(`${payload.length} bytes in a list of sessions`)
    if (kind === kinds.session && sessions.length < sessionsMax) sessions.push(readSession(payload))
    else if (kind === kinds.command && last && last.commands.length < commandsMax) {
      const { command } = readCommand(payload, bytes > plentyBytes ? textInLongList : textInList)
      last.commands.push(command)
      bytes += jsonBytes(command.text)
    } else throw new BadFrame(`kind ${kind} in a list of sessions`)
    bytes += bytesOfOne
    if (bytes > listBytes) throw new ListTooLong()
  }
  return sessions
}

const show = async (socketPath: string, sessionId: string, commandId: string): Promise<SessionCommand> => {
  let shown: ReturnType<typeof readCommand> | undefined
  const pieces: Buffer[] = []
  let size = 0
  for await (const { kind, payload } of framesOf(socketPath, kinds.commandShow, named(sessionId, commandId).done())) {
    if (kind === kinds.command && !shown) {
      shown = readCommand(payload)
      if (shown.textBytes > commandTextBytes) throw new BadFrame(`a command of ${shown.textBytes} bytes`)
    } else if (kind === kinds.text && shown && size + payload.length <= shown.textBytes) pieces.push(payload)
    else throw new BadFrame(`kind ${kind} about a command`)
    size += kind === kinds.text ? payload.length : 0
  }
  if (shown === undefined || size !== shown.textBytes) throw new BadFrame('half a command')
  return { ...shown.command, text: Buffer.concat(pieces).toString(), isWholeText: true }
}

const open = async (socketPath: string, spec: SessionSpec): Promise<{ pid: number }> => {
  const isBash = spec.shell === 'bash'
  const argv = isBash ? ['bash', '--norc', '--noprofile'] : ['sh']
  const fields = named(spec.id)
    .u8(isBash ? 1 : 0)
    .u32(spec.ringBytes)
  try {
    const body = writeProgram(fields, { ...spec, argv }).done()
    const [connection, answer] = await Connection.request(socketPath, kinds.sessionOpen, body)
    connection.close()
    const pid = answer.u32()
    answer.end()
    return { pid }
  } catch (error) {
    throw asStartFailed(error)
  }
}

const execFields = (
  sessionId: string,
  { id, text, keepInput, echoInput }: SessionCommandSpec,
  follow: boolean,
): FieldWriter =>
  named(sessionId, id)
    .u8((keepInput ? 1 : 0) | (echoInput ? 2 : 0) | (follow ? 4 : 0))
    .bytes(Buffer.from(text))

export const sessionsAt = (socketPath: string): Sessions => ({
  open: (spec) => open(socketPath, spec),
  list: () => list(socketPath, ''),
  async get(id) {
    const [session] = await list(socketPath, id)
    if (session === undefined) throw new BadFrame('no session where one was promised')
    return session
  },
  remove: (id) => Connection.command(socketPath, kinds.sessionRemove, named(id).done()),
  exec: (sessionId, spec) =>
    Connection.command(socketPath, kinds.sessionExec, execFields(sessionId, spec, false).done()),
  execAndFollow: (sessionId, spec, options = {}) =>
    followRequest(socketPath, kinds.sessionExec, execFields(sessionId, spec, true), 0, readEnd, options),
  command: (sessionId, commandId) => show(socketPath, sessionId, commandId),
  attach: (sessionId, commandId, offset, options) =>
    followOutput(socketPath, kinds.commandAttach, named(sessionId, commandId), offset, readEnd, options),
  pour: async (sessionId, commandId, take, { follow, signal }) => {
    const request = named(sessionId, commandId)
      .u64(0)
      .u8(follow ? 1 : 0)
    await pourOutput(socketPath, kinds.commandAttach, request, take, signal)
  },
  input: (sessionId, commandId, data, { close = false } = {}) =>
    Connection.command(
      socketPath,
      kinds.commandInput,
      named(sessionId, commandId)
        .u8(close ? 1 : 0)
        .bytes(data)
        .done(),
    ),
})
