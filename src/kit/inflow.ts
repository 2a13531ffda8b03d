// A connection that reads into the same buffer again and again, as many bytes at a time as the kernel has. Node by
// itself allocates new memory for each 64 KiB, which costs more than forwarding these bytes. Listeners of the usual
// stream events get copies of the bytes. read-memory.ts decides how large the buffer is.
import type { ServerResponse } from 'node:http'
import { type NetConnectOpts, Socket, type SocketConstructorOpts } from 'node:net'
import { Duplex, type Writable } from 'node:stream'
import { ReadMemory } from './read-memory.ts'
import { goOnInTurn, longMs } from './yield.ts'

/**
 * A function that gets the bytes of a read. It returns true if it has finished with them, so that the next read may
 * overwrite them. If it returns false, the socket reads nothing more until `resume` is called.
 */
export type Take = (bytes: Buffer) => boolean

/** Maximum size of the buffer in bytes. It is larger than the default buffer of a unix socket. */
const mostBytes = 256 * 1024
/**
 * Maximum number of bytes that a listener of stream events gets at a time. The listener may be a parser of a hostile
 * server's bytes, and must not block the thread for long.
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
            // If `take` returns false, the consumer still uses the bytes: stop reading. Do not make the buffer larger,
            // because a slow consumer would not become faster.
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
   * After this call, a write that the other side refuses is no error. A server may answer and close before it has read
   * the whole request. By default, Node would then close the connection without reading that answer.
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
      // Read on if somebody uses the stream: it is not paused, or it has a listener for `readable`. Such a listener
      // calls `read()`, after which Node reports the stream as paused.
      if (!this.isPaused() || this.listenerCount('readable') > 0) this.read(0)
    })
    return false
  }

  // In Node's sockets, each of the next three methods starts a read from the connection. While `#isWaiting` is true,
  // nothing may be read. So these methods then call the method of `Duplex`, which starts no read.
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
 * Writes bytes to a stream. Returns true if the stream has taken the bytes immediately, so that the caller may
 * overwrite them. If false, the caller must not overwrite them until `next` is called. The stream must not use bytes
 * after it has called the callback of `write`.
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
 * Returns the socket of a response, for a body of known length. Writing to the response itself would delay all bytes
 * until the end of the event loop's turn.
 */
export const beneath = (response: ServerResponse): Writable => {
  response.flushHeaders()
  return response.socket ?? response
}
