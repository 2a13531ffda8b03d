// Kept output for whoever takes it at once: it is read into one buffer over and over and never copied, and nothing more
// is read before the last piece was taken.
import { connect, type Socket } from 'node:net'
import { AgentGone, answerTimeoutMs, readRefusal } from './connection.ts'
import {
  BadFrame,
  encodeRequest,
  FieldReader,
  type FieldWriter,
  headerBytes,
  kinds,
  maxPayloadBytes,
} from './frames.ts'

/** So many bytes before each piece are the taker's to write over, which saves a copy where something stands before it. */
export const headroomBytes = 8

/** The memory of `data` is read into again when it has been taken. */
export type Piece =
  | { type: 'output'; stream: 'stdout' | 'stderr'; data: Buffer }
  | { type: 'truncated'; lostBytes: number }

const bufferBytes = 128 * 1024
/** What is no output is short. */
const longestOther = 4096

const streams: Record<number, 'stdout' | 'stderr'> = { [kinds.stdout]: 'stdout', [kinds.stderr]: 'stderr' }

type Part = Piece | { type: 'frame'; kind: number; payload: Buffer }

/** Finds the parts of a stream of frames, however it was cut: pieces of output as they lie there, other frames whole. */
export class PartFinder {
  readonly #header = Buffer.alloc(headerBytes)
  #headerSize = 0
  /** Of the payload, what is still to come. */
  #left = 0
  #other: Buffer[] = []

  get #stream(): 'stdout' | 'stderr' | undefined {
    return streams[this.#header[4]!]
  }

  *parts(chunk: Buffer): Generator<Part, void, void> {
    for (let at = 0; at < chunk.length; ) {
      if (this.#headerSize < headerBytes) {
        const size = chunk.copy(this.#header, this.#headerSize, at)
        this.#headerSize += size
        at += size
        if (this.#headerSize < headerBytes) return
        this.#left = this.#header.readUInt32LE(0)
        const most = this.#stream === undefined ? longestOther : maxPayloadBytes
        if (this.#left > most) throw new BadFrame(`a frame of ${this.#left} bytes`)
      }
      const data = chunk.subarray(at, at + this.#left)
      at += data.length
      this.#left -= data.length
      const isWhole = this.#left === 0
      if (isWhole) this.#headerSize = 0
      const stream = this.#stream
      if (stream === undefined) this.#other.push(Buffer.from(data))
      else if (data.length > 0) yield { type: 'output', stream, data }
      if (isWhole && stream === undefined) {
        yield { type: 'frame', kind: this.#header[4]!, payload: Buffer.concat(this.#other.splice(0)) }
      }
    }
  }
}

/** What comes in, chunk by chunk in the same memory; each is valid until the next is asked for. */
const chunksOf = (socketPath: string): { socket: Socket; next: () => Promise<Buffer | undefined> } => {
  const memory = Buffer.allocUnsafeSlow(headroomBytes + bufferBytes)
  const buffer = memory.subarray(headroomBytes)
  let filled = 0
  let wake = () => {}
  const socket = connect({
    ...{ path: socketPath, allowHalfOpen: true },
    onread: {
      buffer,
      callback: (size) => {
        filled = size
        wake()
        return false
      },
    },
  })
  let isOver = false
  for (const event of ['end', 'close'] as const) {
    socket.on(event, () => {
      isOver = true
      wake()
    })
  }
  // Whoever reads learns of an error by the end of what there is to read.
  socket.on('error', () => {})
  const next = async () => {
    filled = 0
    socket.resume()
    if (!isOver) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    return filled === 0 ? undefined : buffer.subarray(0, filled)
  }
  return { socket, next }
}

/**
 * Sends a request that is answered by OK and output, and gives that to `take`, which settles when it needs the piece no
 * more. Answers the payload of EXIT; `undefined` where it ended without, or `signal` ended it.
 */
export const pourOutput = async (
  socketPath: string,
  kind: number,
  request: FieldWriter,
  take: (piece: Piece) => Promise<void>,
  signal: AbortSignal,
): Promise<Buffer | undefined> => {
  if (signal.aborted) return undefined
  const { socket, next } = chunksOf(socketPath)
  const stop = () => void socket.destroy()
  signal.addEventListener('abort', stop, { once: true })
  let timer: NodeJS.Timeout | undefined = setTimeout(stop, answerTimeoutMs)
  const finder = new PartFinder()
  try {
    for (const frame of encodeRequest(kind, request.done())) socket.write(frame)
    for (let chunk = await next(); chunk !== undefined; chunk = await next()) {
      for (const part of finder.parts(chunk)) {
        if (signal.aborted) return undefined
        if (timer !== undefined) {
          checkOk(part)
          clearTimeout(timer)
          timer = undefined
        } else if (part.type !== 'frame') await take(part)
        else if (part.kind === kinds.exit) return part.payload
        else if (part.kind === kinds.end) return undefined
        else await take(readLost(part))
      }
    }
    if (signal.aborted) return undefined
    throw new AgentGone('the agent closed the connection')
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
    stop()
  }
}

const checkOk = (part: Part) => {
  if (part.type !== 'frame') throw new BadFrame('output as an answer')
  if (part.kind === kinds.failed) throw readRefusal(part.payload)
  if (part.kind !== kinds.ok) throw new BadFrame(`kind ${part.kind} as an answer`)
}

const readLost = ({ kind, payload }: { kind: number; payload: Buffer }): Piece => {
  if (kind !== kinds.lost) throw new BadFrame(`kind ${kind} from a job`)
  const fields = new FieldReader(payload)
  const lostBytes = fields.u64()
  fields.end()
  return { type: 'truncated', lostBytes }
}
