// A connection to an agent. Returns frames in order. Reads from the socket only while a caller waits for a frame.
import { connect, type Socket } from 'node:net'
import { constants } from 'node:os'
import { Budget } from '#src/kit/budget.ts'
import { BrokenStream, ByteReader } from '#src/kit/byte-reader.ts'
import { Inflow } from '#src/kit/inflow.ts'
import { giveBack } from '#src/kit/pour.ts'
import {
  BadFrame,
  encodeFrame,
  encodeRequest,
  FieldReader,
  type Frame,
  FrameDecoder,
  frameHeader,
  headerBytes,
  kinds,
} from './frames.ts'
import { ReadySockets } from './ready-sockets.ts'

/** Thrown if the agent cannot be reached, or ended before it answered. */
export class AgentGone extends Error {
  override name = 'AgentGone'
}

const stages = ['protocol', 'user', 'cwd', 'exec', 'connect', 'busy', 'ending', 'system', 'job', 'file'] as const
export type Stage = (typeof stages)[number]

/** Thrown if the agent refused a request. `stage` says which step failed, and `errno` which error the kernel reported, if any. */
export class AgentRefused extends Error {
  override name = 'AgentRefused'
  readonly stage: Stage
  readonly errno: string

  constructor(stage: Stage, errno: string) {
    super(`the agent refused (${stage}: ${errno})`)
    this.stage = stage
    this.errno = errno
  }
}

/** Whether the error is the agent's refusal of a request about a job or a session, with this errno. */
export const isRefused = (error: unknown, errno: string): boolean =>
  error instanceof AgentRefused && error.stage === 'job' && error.errno === errno

// Some errnos have two names, such as EAGAIN and EWOULDBLOCK. The name that Node lists first is used.
const errnoNames = new Map(
  Object.entries(constants.errno)
    .reverse()
    .map(([name, number]) => [number, name]),
)

export const readRefusal = (payload: Buffer): AgentRefused => {
  const fields = new FieldReader(payload)
  const stage = stages[fields.u8()]
  const errno = fields.u32()
  fields.end()
  if (stage === undefined) throw new BadFrame('a stage that does not exist')
  return new AgentRefused(stage, errnoNames.get(errno) ?? `errno ${errno}`)
}

/** Timeout of the first answer in ms. A frozen or broken sandbox accepts connections and never answers. */
export const answerTimeoutMs = 60_000

/**
 * Maximum number of connections to one agent. The agent itself refuses more than 1024; this limit is for a hostile program in the
 * agent's place.
 */
const open = new Budget({ each: 1100 })

/** Counts a connection until it is closed. Throws `busy` if too many connections to the agent are open. */
const counted = <T extends Socket>(socketPath: string, connectTo: () => T): T => {
  if (!open.take(socketPath)) throw new AgentRefused('busy', 'EAGAIN')
  return connectTo().once('close', () => open.give(socketPath))
}

/** Returns a socket that is still connecting. Bytes that are written to the socket are sent when it is connected. */
const openFresh = (socketPath: string): Socket =>
  counted(socketPath, () => heedless(connect({ path: socketPath, allowHalfOpen: true })))

let ready: ReadySockets | undefined

/** Makes this program open connections to agents before operations need them, until the returned object is disposed of. */
export const openAhead = (sockets = new ReadySockets()): Disposable => {
  ready = sockets
  return {
    [Symbol.dispose]: () => {
      if (ready === sockets) ready = undefined
      sockets[Symbol.dispose]()
    },
  }
}

/**
 * Returns a socket that was opened ahead, or a new one. Sockets for later operations are opened only afterwards, so as not to delay
 * this operation.
 */
const openSocket = (socketPath: string): Socket => {
  if (ready === undefined) return openFresh(socketPath)
  const socket = ready.take(socketPath) ?? openFresh(socketPath)
  return socket.once('close', (hadError) => {
    // An error, or a close by the agent, means that the agent has ended. Then no new socket is needed.
    if (!hadError && !socket.readableEnded) fillSoon(socketPath)
  })
}

const fillSoon = (socketPath: string) => {
  try {
    ready?.fill(socketPath, () => openFresh(socketPath))
  } catch {
    // Ignore the error: too many connections to this agent are open. The next operation opens its own connection.
  }
}

/** Opens a connection for large amounts of raw bytes. */
export const openInflow = (socketPath: string): Inflow =>
  counted(socketPath, () => heedless(Inflow.to({ path: socketPath, allowHalfOpen: true })))

/** Ignores `error` events: the reader sees an error as the end of the stream. */
const heedless = <T extends Socket>(socket: T): T => socket.on('error', () => {})

/**
 * Closes a connection in the next turn of the event loop, so that the caller gets the answer first. The close wakes the agent,
 * which may need the same CPU.
 */
export const closeSoon = (socket: Socket): void => void setImmediate(() => socket.destroy())

/** Number of frames that `next` returns in a row before the event loop may do other work. */
const givenInARow = 128

export class Connection {
  readonly #socket: Socket
  readonly #bytes: ByteReader
  readonly #decoder = new FrameDecoder()
  #frames: Frame[] = []
  #given = 0

  private constructor(socket: Socket) {
    this.#socket = socket
    this.#bytes = new ByteReader(socket)
  }

  /**
   * Connects, sends the request, and returns the connection and the fields of the agent's OK. Aborting `signal` closes the
   * connection.
   */
  static async request(
    socketPath: string,
    kind: number,
    body: Uint8Array,
    signal?: AbortSignal,
  ): Promise<[Connection, FieldReader]> {
    const frames = encodeRequest(kind, body)
    const connection = new Connection(openSocket(socketPath))
    for (const frame of frames) connection.#socket.write(frame)
    const stop = (): void => connection.abort()
    if (signal?.aborted) stop()
    signal?.addEventListener('abort', stop, { once: true })
    try {
      return [connection, await connection.#answer()]
    } finally {
      signal?.removeEventListener('abort', stop)
    }
  }

  /** Sends a request that the agent answers only with OK, and waits for that answer. */
  static async command(socketPath: string, kind: number, body: Uint8Array): Promise<void> {
    const [connection, answer] = await Connection.request(socketPath, kind, body)
    connection.close()
    answer.end()
  }

  async #answer(): Promise<FieldReader> {
    const timer = setTimeout(() => this.abort(), answerTimeoutMs)
    try {
      const frame = await this.nextOrRefusal()
      if (frame.kind !== kinds.ok) throw new BadFrame(`kind ${frame.kind} as an answer`)
      return new FieldReader(frame.payload)
    } catch (error) {
      this.abort()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  /** Returns the next frame. Throws `AgentGone` if the connection has ended. */
  async next(): Promise<Frame> {
    const frame = await this.nextOrEnd()
    if (frame === undefined) throw new AgentGone('the agent closed the connection')
    return frame
  }

  /** Like `next`, but throws after 60 s without a frame. Not for answers that wait until a command writes or ends. */
  async nextSoon(): Promise<Frame> {
    if (this.#frames.length > 0) return await this.next()
    const timer = setTimeout(() => this.abort(), answerTimeoutMs)
    try {
      return await this.next()
    } finally {
      clearTimeout(timer)
    }
  }

  /** Like `next`, but throws `AgentRefused` if the frame is a refusal. */
  async nextOrRefusal(): Promise<Frame> {
    const frame = await this.next()
    if (frame.kind === kinds.failed) throw readRefusal(frame.payload)
    return frame
  }

  async nextOrEnd(): Promise<Frame | undefined> {
    // Let other work run: a stream of small frames could block the event loop.
    if (++this.#given % givenInARow === 0) await new Promise(setImmediate)
    while (this.#frames.length === 0) {
      const chunk = await this.#chunk()
      if (chunk === undefined) return undefined
      try {
        this.#frames = this.#decoder.push(chunk)
        giveBack(chunk)
      } catch (error) {
        this.abort()
        throw error
      }
    }
    return this.#frames.shift()
  }

  /** Returns newly arrived bytes, or `undefined` at the connection's end. The socket is read only during this call. */
  async #chunk(): Promise<Buffer | undefined> {
    try {
      return await this.#bytes.some()
    } catch (error) {
      throw error instanceof BrokenStream ? new AgentGone('the agent is out of reach', { cause: error.cause }) : error
    }
  }

  send(kind: number, payload?: Uint8Array): void {
    if (this.#socket.writable) this.#socket.write(encodeFrame(kind, payload))
  }

  /** Sends a frame without copying its payload. Settles when the kernel has accepted the whole frame, or the socket is closed. */
  sendWhole(kind: number, payload: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      if (!this.#socket.writable) return resolve()
      this.#socket.cork()
      this.#socket.write(frameHeader(kind, payload.length))
      this.#socket.write(payload, () => resolve())
      this.#socket.uncork()
    })
  }

  /** Ends the direction to the agent, which can still answer. */
  sendNoMore(): void {
    if (this.#socket.writable) this.#socket.end()
  }

  /** Destroys the connection immediately: a caller that waits for a frame gets `AgentGone`. */
  abort(): void {
    this.#socket.destroy()
  }

  /** Closes the connection in the next turn of the event loop. Call it when the operation is complete. */
  close(): void {
    closeSoon(this.#socket)
  }
}

/** Maximum payload, in bytes, of an OK frame that is followed by raw bytes. */
const longestRawAnswer = 64

/**
 * Sends a request. After the agent's OK, raw bytes go in both directions, and either can end first. Returns the fields of the OK,
 * and the socket, from which the OK was already read.
 */
export const requestRaw = async (
  socketPath: string,
  kind: number,
  body: Uint8Array,
): Promise<[socket: Inflow, answer: FieldReader]> => {
  const socket = openInflow(socketPath)
  const bytes = new ByteReader(socket)
  const timer = setTimeout(() => socket.destroy(), answerTimeoutMs)
  try {
    for (const frame of encodeRequest(kind, body)) socket.write(frame)
    const header = await readExactly(bytes, headerBytes)
    const size = header.readUInt32LE(0)
    if (size > longestRawAnswer) throw new BadFrame('an answer that is too long')
    const payload = await readExactly(bytes, size)
    if (header[4] === kinds.failed) throw readRefusal(payload)
    if (header[4] !== kinds.ok) throw new BadFrame(`kind ${header[4]} as an answer`)
    return [socket, new FieldReader(payload)]
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    clearTimeout(timer)
    bytes.release()
  }
}

const agentGone = (cause: unknown) => new AgentGone('the agent closed the connection', { cause })

const readExactly = async (bytes: ByteReader, size: number): Promise<Buffer> => {
  const read = await bytes.exactly(size).catch((error: unknown) => {
    throw error instanceof BrokenStream ? agentGone(error.cause ?? error) : error
  })
  if (read === undefined) throw agentGone(undefined)
  return read
}
