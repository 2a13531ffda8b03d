// A connection that is read into the same memory over and over, in pieces as large as the kernel has them. Node's own way is
// new memory for each 64 KiB, which costs more than passing the bytes on. Whoever listens as to any stream gets copies. How
// large the memory may be: read-memory.ts.
import type { ServerResponse } from 'node:http'
import { type NetConnectOpts, Socket, type SocketConstructorOpts } from 'node:net'
import { Duplex, type Writable } from 'node:stream'
import { ReadMemory } from './read-memory.ts'
import { goOnInTurn, longMs } from './turns.ts'

/**
 * Gets bytes that are overwritten by the next. Answers true when it needs them no more; else nothing is read until the
 * connection is resumed.
 */
export type Take = (bytes: Buffer) => boolean

/** More than a unix socket holds unless it is told otherwise. */
const mostBytes = 256 * 1024
/** For those who listen as to any stream. One may be a parser, to which each byte of a hostile server is work. */
const mostParsedBytes = 64 * 1024

type Done = (error?: Error | null) => void

/** Errors of a write where the other side has closed. */
const refusals = ['EPIPE', 'ECONNRESET']

export class Inflow extends Socket {
  #take: Take | undefined
  #hearsOut = false
  /** The other side takes nothing any more. */
  #isRefused = false
  /** Others have their turns before more is read. */
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
            // What is not taken at once stays where it is, and its reader is slow: more memory is of no use.
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
   * What the other side does not take any more is dropped from here on, and is no error: a server that answers and closes in
   * the middle of what it is sent is heard to its end. Node would close the connection with its answer unread.
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
      // Who asks piece by piece is not told otherwise from who has paused.
      if (!this.isPaused() || this.listenerCount('readable') > 0) this.read(0)
    })
    return false
  }

  // Each of these has Node read on from the connection.
  override read(size?: number): Buffer | null {
    return this.#isWaiting ? Duplex.prototype.read.call(this, size) : super.read(size)
  }

  override resume(): this {
    return this.#isWaiting ? (Duplex.prototype.resume.call(this) as this) : super.resume()
  }

  override _read(size: number): void {
    if (!this.#isWaiting) super._read(size)
  }

  /** From here on everything that comes goes to `take`, the first of it being what has come already. */
  takeOver(take: Take): void {
    this.#take = take
    const pieces: Buffer[] = []
    for (let piece = this.read(); piece !== null; piece = this.read()) pieces.push(piece)
    if (pieces.length === 0 || take(Buffer.concat(pieces))) this.resume()
    else this.pause()
  }

  /** What comes is for those who listen again. */
  release(): void {
    this.#take = undefined
    this.pause()
  }
}

/** Writes to something that keeps no bytes which it says are written. True if they are at once, else `next` follows. */
export const writeThrough = (to: Writable, bytes: Uint8Array, next: () => void): boolean => {
  let isWaiting = false
  to.write(bytes, () => {
    if (isWaiting) next()
  })
  isWaiting = to.writableLength > 0
  return !isWaiting
}

/** Where a body of known length goes: a response would have its socket wait for the end of the tick with each piece. */
export const beneath = (response: ServerResponse): Writable => {
  response.flushHeaders()
  return response.socket ?? response
}
