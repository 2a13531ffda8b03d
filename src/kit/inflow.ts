// A connection that reads into the same buffer again and again. Node takes new memory for each 64 KiB, which costs more than
// forwarding these bytes.
import type { ServerResponse } from 'node:http'
import { type NetConnectOpts, Socket, type SocketConstructorOpts } from 'node:net'
import { Duplex, type Writable } from 'node:stream'
import { ReadMemory } from './read-memory.ts'
import { goOnInTurn, longMs } from './yield.ts'

/**
 * Gets the bytes of a read. Returns true if the next read may overwrite them. After false, the socket reads nothing more until
 * `resume` is called.
 */
export type Take = (bytes: Buffer) => boolean

/** Maximum size of the buffer in bytes. It is larger than the default buffer of a unix socket. */
const mostBytes = 256 * 1024
/**
 * Maximum number of bytes that a listener of stream events gets at a time. Parsing a hostile server's bytes must not block the
 * thread.
 */
const mostParsedBytes = 64 * 1024

type Done = (error?: Error | null) => void

/** The errors that a write causes if the other side has closed the connection. */
const refusals = ['EPIPE', 'ECONNRESET']

export class Inflow extends Socket {
  #take: Take | undefined
  #hearsOut = false
  /** True if the other side no longer accepts what is written. */
  #isRefused = false
  /** True while no bytes are read, because processing the last piece took long (yield.ts). */
  #isWaiting = false

  constructor(options: SocketConstructorOpts = {}) {
    const memory = new ReadMemory()
    super({
      ...options,
      onread: {
        buffer: () => memory.bytes,
        callback: (size, from) => {
          const bytes = (from as Buffer).subarray(0, size)
          if (this.#take !== undefined) {
            // If `#take` returns false, the consumer still uses the bytes. A larger buffer would not make such a slow consumer
            // faster.
            if (!this.#take(bytes)) return false
            memory.fit(size, mostBytes)
            return true
          }
          const wantsMore = this.#offer(Buffer.from(bytes))
          if (this.#isWaiting) memory.shrink()
          else memory.fit(size, mostParsedBytes)
          return wantsMore
        },
      },
    })
    this.once('close', () => memory.close())
  }

  static to(where: NetConnectOpts): Inflow {
    return new Inflow(where as SocketConstructorOpts).connect(where)
  }

  /**
   * After this call, a refused write is no error. A server may answer and close before it has read the whole request. Node
   * would then close the connection without reading that answer.
   */
  hearOut(): this {
    this.#hearsOut = true
    return this
  }

  override _write(bytes: Uint8Array, encoding: BufferEncoding, done: Done): void {
    if (this.#isRefused) done()
    else super._write(bytes, encoding, this.#orDropped(done))
  }

  override _writev(pieces: { chunk: Uint8Array; encoding: BufferEncoding }[], done: Done): void {
    if (this.#isRefused) done()
    else super._writev?.(pieces, this.#orDropped(done))
  }

  #orDropped(done: Done): Done {
    if (!this.#hearsOut) return done
    return (error) => {
      this.#isRefused = refusals.includes((error as NodeJS.ErrnoException | undefined)?.code ?? '')
      done(this.#isRefused ? undefined : error)
    }
  }

  #offer(piece: Buffer): boolean {
    const began = performance.now()
    const wantsMore = this.push(piece)
    const tookMs = performance.now() - began
    if (tookMs < longMs) return wantsMore
    this.#isWaiting = true
    goOnInTurn(tookMs, () => {
      this.#isWaiting = false
      // Reads on if the stream has a reader. If the reader listens for `readable`, Node reports the stream as paused.
      if (!this.isPaused() || this.listenerCount('readable') > 0) this.read(0)
    })
    return false
  }

  // Node's versions of the next three methods read from the connection. While this socket waits for its turn (`#isWaiting`),
  // nothing may be read.
  override read(size?: number): Buffer | null {
    return this.#isWaiting ? Duplex.prototype.read.call(this, size) : super.read(size)
  }

  override resume(): this {
    return this.#isWaiting ? (Duplex.prototype.resume.call(this) as this) : super.resume()
  }

  override _read(size: number): void {
    if (!this.#isWaiting) super._read(size)
  }

  /** Passes all bytes to `take` from now on, beginning with those that were received but not read. */
  takeOver(take: Take): void {
    this.#take = take
    const pieces: Buffer[] = []
    for (let piece = this.read(); piece !== null; piece = this.read()) pieces.push(piece)
    if (pieces.length === 0 || take(Buffer.concat(pieces))) this.resume()
    else this.pause()
  }

  /** Ends `takeOver`: later bytes go to the listeners of stream events again. */
  release(): void {
    this.#take = undefined
    this.pause()
  }
}

/**
 * Writes bytes to a stream. Returns true if the caller may overwrite the bytes now. Otherwise the caller must wait until
 * `next` is called. The stream must not use bytes after it has called the callback of `write`.
 */
export const writeThrough = (to: Writable, bytes: Uint8Array, next: () => void): boolean => {
  let isWaiting = false
  to.write(bytes, () => {
    if (isWaiting) next()
  })
  isWaiting = to.writableLength > 0
  return !isWaiting
}

/**
 * Returns the socket of a response, for a body of known length. The response itself would delay all bytes until the end of the
 * event loop's turn.
 */
export const beneath = (response: ServerResponse): Writable => {
  response.flushHeaders()
  return response.socket ?? response
}
