// Reads stored output without copying it. All bytes arrive in one buffer, which is filled again only after its pieces were
// consumed.
import { AgentGone, answerTimeoutMs, closeSoon, openInflow, readRefusal } from './connection.ts'
import {
  BadFrame,
  checkSize,
  encodeRequest,
  FieldReader,
  type FieldWriter,
  headerBytes,
  kinds,
  maxPayloadBytes,
} from './frames.ts'

/**
 * A piece of output. The memory of `data` is reused after the piece was consumed. The consumer may overwrite `headerBytes` bytes
 * before `data` with a header.
 */
export type Piece =
  | { type: 'output'; stream: 'stdout' | 'stderr'; data: Buffer }
  | { type: 'truncated'; lostBytes: number }

/** Consumes a piece of output. Returns true if the piece is consumed already. Otherwise calls `done` later, exactly once. */
export type TakePiece = (piece: Piece, done: () => void) => boolean

/** Maximum payload of a frame that does not carry output, in bytes. */
const longestOther = 4096

const streams: Record<number, 'stdout' | 'stderr'> = { [kinds.stdout]: 'stdout', [kinds.stderr]: 'stderr' }

type Part = Piece | { type: 'frame'; kind: number; payload: Buffer }

/** Range of a chunk that contains output of one stream. */
type Stretch = { stream: 'stdout' | 'stderr'; from: number; to: number }

/**
 * Joins two outputs of one stream in a chunk. A frame header separates the outputs. Moves the shorter output over this header. The
 * consumer is then called only once, which takes less time.
 */
const join = (chunk: Buffer, stretch: Stretch, from: number, to: number): void => {
  if (to - from < stretch.to - stretch.from) {
    chunk.copyWithin(stretch.to, from, to)
    stretch.to += to - from
    return
  }
  chunk.copyWithin(stretch.from + from - stretch.to, stretch.from, stretch.to)
  stretch.from += from - stretch.to
  stretch.to = to
}

const pieceOf = (chunk: Buffer, { stream, from, to }: Stretch): Piece => ({
  ...{ type: 'output', stream, data: chunk.subarray(from, to) },
})

/** Splits bytes of frames into parts. A part is consecutive stdout, consecutive stderr, or one complete frame of another kind. */
export class PartFinder {
  readonly #header = Buffer.alloc(headerBytes)
  #headerSize = 0
  /** Bytes of the current payload that have not arrived yet. */
  #left = 0
  #other: Buffer[] = []

  get #stream(): 'stdout' | 'stderr' | undefined {
    return streams[this.#header[4]!]
  }

  /** Yields the output and other frames in a chunk. Overwrites bytes of the chunk, so the caller must not use it afterwards. */
  *parts(chunk: Buffer): Generator<Part, void, void> {
    let stretch: Stretch | undefined
    for (let at = 0; at < chunk.length; ) {
      if (this.#headerSize < headerBytes) {
        const size = chunk.copy(this.#header, this.#headerSize, at)
        this.#headerSize += size
        at += size
        if (this.#headerSize < headerBytes) break
        this.#left = this.#header.readUInt32LE(0)
        checkSize(this.#header[4]!, this.#left, this.#stream === undefined ? longestOther : maxPayloadBytes)
      }
      const to = Math.min(at + this.#left, chunk.length)
      const stream = this.#stream
      if (stretch !== undefined && stretch.stream !== stream) {
        yield pieceOf(chunk, stretch)
        stretch = undefined
      }
      if (stream === undefined) this.#other.push(Buffer.from(chunk.subarray(at, to)))
      else if (stretch === undefined) stretch = { stream, from: at, to }
      else join(chunk, stretch, at, to)
      this.#left -= to - at
      at = to
      if (this.#left > 0) break
      this.#headerSize = 0
      if (stream === undefined) {
        yield { type: 'frame', kind: this.#header[4]!, payload: Buffer.concat(this.#other.splice(0)) }
      }
    }
    if (stretch !== undefined && stretch.to > stretch.from) yield pieceOf(chunk, stretch)
  }
}

/**
 * Sends `request`, and gives the output in the answer to `take`. Returns the payload of the frame EXIT. Returns `undefined` if END
 * came instead or `signal` was aborted.
 */
export const pourOutput = async (
  socketPath: string,
  kind: number,
  request: FieldWriter,
  take: TakePiece,
  signal: AbortSignal,
): Promise<Buffer | undefined> => {
  if (signal.aborted) return undefined
  const socket = openInflow(socketPath)
  const ended = Promise.withResolvers<Buffer | undefined>()
  const stop = () => void socket.destroy()
  signal.addEventListener('abort', stop, { once: true })
  const timer = setTimeout(stop, answerTimeoutMs)
  const finder = new PartFinder()
  let isAnswered = false
  let isOver = false
  const end = (exit: Buffer | undefined) => {
    isOver = true
    ended.resolve(exit)
  }
  let untaken = 0
  const onTaken = () => {
    untaken -= 1
    if (untaken === 0) socket.resume()
  }
  const onPart = (part: Part) => {
    if (!isAnswered) {
      checkOk(part)
      isAnswered = true
      clearTimeout(timer)
    } else if (part.type === 'frame' && part.kind === kinds.exit) end(part.payload)
    else if (part.type === 'frame' && part.kind === kinds.end) end(undefined)
    else if (!take(part.type === 'frame' ? readLost(part) : part, onTaken)) untaken += 1
  }
  for (const frame of encodeRequest(kind, request.done())) socket.write(frame)
  const onOver = () => {
    if (signal.aborted) ended.resolve(undefined)
    else ended.reject(new AgentGone('the agent closed the connection'))
  }
  socket.once('end', onOver).once('close', onOver)
  socket.takeOver((chunk) => {
    try {
      for (const part of finder.parts(chunk)) {
        if (isOver || signal.aborted) return false
        onPart(part)
      }
    } catch (error) {
      ended.reject(error)
      return false
    }
    return untaken === 0
  })
  try {
    return await ended.promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
    closeSoon(socket)
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
  if (lostBytes === 0) throw new BadFrame('a loss of nothing')
  return { type: 'truncated', lostBytes }
}
