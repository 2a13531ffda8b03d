// Jobs: commands and terminals that continue without a connection. The agent stores their output, so a restarted gate can still
// serve it.
import { asStartFailed, type CommandSpec, type Exit, readExit, writeProgram } from './command.ts'
import { AgentGone, Connection } from './connection.ts'
import { BadFrame, FieldReader, FieldWriter, type Frame, kinds } from './frames.ts'
import { pourOutput, type TakePiece } from './pour-output.ts'

export type JobSpec = Pick<CommandSpec, 'argv' | 'env' | 'cwd' | 'user'> & {
  /** Id of the job, chosen by the caller: 1 to 64 printable ASCII characters without space. */
  id: string
  /** Maximum number of output bytes that are stored: 4 KiB to 256 MiB, on the sandbox's disk. */
  ringBytes: number
  /** Size of the controlling terminal that the job gets instead of pipes. All output of the job is then `stdout`. */
  terminal?: { cols: number; rows: number }
  /** Leaves the job's input open for calls of `input`. Default: the input is empty. A terminal's input is always open. */
  keepInput?: boolean
  /**
   * If true, a job that cannot start is listed as ended, with exit code 127 and the reason on `stderr`. If false, `spawn` rejects.
   */
  keepFailed?: boolean
  /** Whether one sixteenth of `ringBytes` is reserved for the first bytes of the output. */
  keepBeginning?: boolean
  /** Bytes that the caller stores with the job, and that `list` returns. At most 4 KiB. */
  metadata?: Uint8Array
}

export type Job = {
  id: string
  isTerminal: boolean
  state: 'starting' | 'running' | 'ended'
  pid: number
  /** The end of the job; `null` while it runs. */
  exit: Exit | null
  /** Offset of the first output byte that is still stored. `endOffset` is the offset of the next byte to come. */
  startOffset: number
  endOffset: number
  createdAt: Date
  endedAt: Date | null
  cols: number
  rows: number
  metadata: Buffer
}

/** A piece of output, or the report of its loss. `offset`: position of the piece's first byte in the whole output. */
export type OutputEvent =
  | { type: 'output'; stream: 'stdout' | 'stderr'; offset: number; data: Buffer }
  | { type: 'truncated'; offset: number; lostBytes: number }
export type ExitEvent = { type: 'exit' } & Exit
export type JobEvent = OutputEvent | ExitEvent

export type AttachOptions = {
  /** True (default): follow the output until the job ends. False: stop at the end of the output so far. */
  follow?: boolean
  /** Called when the agent has answered OK to the request for the output. */
  onTaken?: (() => void) | undefined
  /** Aborting this signal ends the iteration over the output. */
  signal?: AbortSignal
}

/** Jobs of one sandbox. A call for a job that is missing or in the wrong state throws `AgentRefused` with stage `job`. */
export interface Jobs {
  /** Starts a job. Throws `StartFailed` like `exec`, or `AgentRefused` (job, EEXIST) if the id is in use. */
  spawn(spec: JobSpec): Promise<{ pid: number }>
  attach(id: string, offset: number, options?: AttachOptions): AsyncGenerator<JobEvent, void, void>
  /** Passes all output of the job to `take`, from the first byte on. Reports lost bytes as `truncated`. See `Sessions.pour`. */
  pour(id: string, take: TakePiece, options: { follow: boolean; signal: AbortSignal }): Promise<void>
  /**
   * Writes to the job's input. Settles when the job's pipe or terminal has accepted every byte. Calls for one job stay in order.
   */
  input(id: string, data: Uint8Array): Promise<void>
  closeInput(id: string): Promise<void>
  resize(id: string, cols: number, rows: number): Promise<void>
  /** Sends a signal to the job's whole process group. */
  signal(id: string, signal: number): Promise<void>
  list(): Promise<Job[]>
  /** Kills the job's remaining processes and deletes the job. */
  remove(id: string): Promise<void>
}

const inputPieceBytes = 1024 * 1024
const states = ['starting', 'running', 'ended'] as const
const named = (id: string): FieldWriter => new FieldWriter().string(id)

const spawn = async (socketPath: string, spec: JobSpec): Promise<{ pid: number }> => {
  const fields = new FieldWriter()
    .u8((spec.terminal ? 1 : 0) | (spec.keepInput ? 2 : 0) | (spec.keepFailed ? 4 : 0) | (spec.keepBeginning ? 8 : 0))
    .string(spec.id)
    .u16(spec.terminal?.cols ?? 0)
    .u16(spec.terminal?.rows ?? 0)
    .u32(spec.ringBytes)
    .bytes(spec.metadata ?? Buffer.alloc(0))
  try {
    const [connection, answer] = await Connection.request(socketPath, kinds.spawn, writeProgram(fields, spec).done())
    connection.close()
    const pid = answer.u32()
    answer.end()
    return { pid }
  } catch (error) {
    throw asStartFailed(error)
  }
}

const readOutput = ({ kind, payload }: Frame, offset: number): OutputEvent => {
  if (kind === kinds.stdout) return { type: 'output', stream: 'stdout', offset, data: payload }
  if (kind === kinds.stderr) return { type: 'output', stream: 'stderr', offset, data: payload }
  if (kind !== kinds.lost) throw new BadFrame(`kind ${kind} from a job`)
  const fields = new FieldReader(payload)
  const lostBytes = fields.u64()
  fields.end()
  if (lostBytes === 0) throw new BadFrame('a loss of nothing')
  return { type: 'truncated', offset, lostBytes }
}

/**
 * Reads stored output from `offset` on. `names`: the fields that identify the job or command. `readEnd` decodes the payload of
 * EXIT.
 */
export const followOutput = <End extends { type: 'exit' }>(
  socketPath: string,
  kind: number,
  names: FieldWriter,
  offset: number,
  readEnd: (payload: Buffer) => End,
  { follow = true, ...options }: AttachOptions = {},
): AsyncGenerator<OutputEvent | End, void, void> =>
  followRequest(socketPath, kind, names.u64(offset).u8(follow ? 1 : 0), offset, readEnd, options)

/** A separate function, because the generator `followRequest` would keep the request in memory until the output ends. */
const connectBy = async (socketPath: string, kind: number, request: FieldWriter): Promise<Connection> => {
  const [connection] = await Connection.request(socketPath, kind, request.done())
  return connection
}

/** Sends a request that the agent answers with output, and yields that output, which begins at byte `offset` of all output. */
export async function* followRequest<End extends { type: 'exit' }>(
  socketPath: string,
  kind: number,
  request: FieldWriter,
  offset: number,
  readEnd: (payload: Buffer) => End,
  { onTaken, signal }: Pick<AttachOptions, 'onTaken' | 'signal'>,
): AsyncGenerator<OutputEvent | End, void, void> {
  if (signal?.aborted) return
  const connection = await connectBy(socketPath, kind, request)
  onTaken?.()
  const stop = (): void => connection.abort()
  signal?.addEventListener('abort', stop, { once: true })
  try {
    for (let at = offset; !signal?.aborted; ) {
      const frame = await connection.next()
      if (frame.kind === kinds.end) return
      if (frame.kind === kinds.exit) {
        yield readEnd(frame.payload)
        return
      }
      const event = readOutput(frame, at)
      at += event.type === 'output' ? event.data.length : event.lostBytes
      yield event
    }
  } catch (error) {
    if (!(signal?.aborted && error instanceof AgentGone)) throw error
  } finally {
    signal?.removeEventListener('abort', stop)
    connection.close()
  }
}

const readEnd = (payload: Buffer): ExitEvent => ({ type: 'exit', ...readExit(payload) })

const readJob = (payload: Buffer): Job => {
  const fields = new FieldReader(payload)
  const id = fields.string()
  const isTerminal = fields.u8() !== 0
  const state = fields.word(states)
  const pid = fields.u32()
  const exit = readExit(Buffer.concat([Buffer.of(fields.u8()), new FieldWriter().u32(fields.u32()).done()]))
  const [startOffset, endOffset] = [fields.u64(), fields.u64()]
  const [createdAt, endedAt] = [fields.time(), fields.time()]
  const [rows, cols] = [fields.u16(), fields.u16()]
  const metadata = fields.bytes()
  fields.end()
  return {
    ...{ id, isTerminal, state, pid, exit: state === 'ended' ? exit : null, startOffset, endOffset },
    ...{ createdAt, endedAt: endedAt.getTime() === 0 ? null : endedAt, cols, rows, metadata },
  }
}

const jobsMax = 1024
/** Maximum size of one job in the agent's list, including its metadata, in bytes. */
const jobBytes = 8 * 1024

const list = async (socketPath: string): Promise<Job[]> => {
  const [connection] = await Connection.request(socketPath, kinds.list, Buffer.alloc(0))
  try {
    const jobs: Job[] = []
    for (;;) {
      const { kind, payload } = await connection.nextSoon()
      if (kind === kinds.end) return jobs
      if (kind !== kinds.job || jobs.length > jobsMax || payload.length > jobBytes)
        throw new BadFrame(`kind ${kind} in a list`)
      jobs.push(readJob(payload))
    }
  } finally {
    connection.close()
  }
}

export const jobsAt = (socketPath: string): Jobs => {
  /** For each job with unsent input: a promise that settles when its last input is sent. */
  const sending = new Map<string, Promise<void>>()

  /** Sends the inputs of a job in order. Each input has its own connection, so parallel sends could overtake each other. */
  const inTurn = async (id: string, send: () => Promise<void>): Promise<void> => {
    const before = sending.get(id)
    const turn = (async () => {
      await before?.catch(() => {})
      await send()
    })()
    sending.set(id, turn)
    try {
      await turn
    } finally {
      if (sending.get(id) === turn) sending.delete(id)
    }
  }

  const sendInput = async (id: string, data: Uint8Array): Promise<void> => {
    for (let at = 0; at < data.length; at += inputPieceBytes) {
      const body = named(id)
        .bytes(data.subarray(at, at + inputPieceBytes))
        .done()
      await Connection.command(socketPath, kinds.input, body)
    }
  }

  return {
    spawn: (spec) => spawn(socketPath, spec),
    attach: (id, offset, options) => followOutput(socketPath, kinds.attach, named(id), offset, readEnd, options),
    pour: async (id, take, { follow, signal }) => {
      const request = named(id)
        .u64(0)
        .u8(follow ? 1 : 0)
      await pourOutput(socketPath, kinds.attach, request, take, signal)
    },
    input: (id, data) => inTurn(id, () => sendInput(id, data)),
    closeInput: (id) => inTurn(id, () => Connection.command(socketPath, kinds.closeInput, named(id).done())),
    resize: (id, cols, rows) => Connection.command(socketPath, kinds.resize, named(id).u16(cols).u16(rows).done()),
    signal: (id, signal) => Connection.command(socketPath, kinds.signal, named(id).u8(signal).done()),
    list: () => list(socketPath),
    remove: (id) => Connection.command(socketPath, kinds.remove, named(id).done()),
  }
}
