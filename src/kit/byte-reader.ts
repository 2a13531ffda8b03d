// Reads bytes from a socket on request, and takes no further bytes from it. Another reader can therefore continue with the
// next byte.
import type { Socket } from 'node:net'

/** Thrown if the stream ended before all requested bytes arrived, or if the connection failed. */
export class BrokenStream extends Error {
  override name = 'BrokenStream'
}

const events = ['readable', 'end', 'close'] as const

export class ByteReader {
  readonly #socket: Socket
  #isListening = false
  #wake: (() => void) | undefined
  readonly #onEvent = () => this.#wake?.()

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /**
   * Reads exactly `size` bytes. Returns `undefined` if the stream ends before the first byte, and throws `BrokenStream` if
   * it ends before the last.
   */
  async exactly(size: number): Promise<Buffer | undefined> {
    if (size === 0) return Buffer.alloc(0)
    const bytes = await this.#next(size)
    // At the end of the stream, `read` returns the remaining bytes, even if they are fewer than `size`.
    if (bytes !== undefined && bytes.length !== size) throw new BrokenStream('the stream ended in the middle')
    return bytes
  }

  /** Reads the bytes that have arrived, at least one. Returns `undefined` at the end of the stream. */
  some(): Promise<Buffer | undefined> {
    return this.#next()
  }

  async #next(size?: number): Promise<Buffer | undefined> {
    const socket = this.#socket
    for (;;) {
      const bytes = socket.read(size) as Buffer | null
      if (bytes !== null) return bytes
      if (socket.readableEnded) return undefined
      if (socket.destroyed) throw new BrokenStream('the connection is closed', { cause: socket.errored })
      this.#listen()
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /**
   * Adds the listeners, once. A stream emits `readable` for each new listener, so adding listeners at each attempt would make an
   * endless loop.
   */
  #listen() {
    if (this.#isListening) return
    this.#isListening = true
    for (const event of events) this.#socket.on(event, this.#onEvent)
  }

  /** Removes the listeners of this reader, so that another reader can take over. */
  release() {
    this.#isListening = false
    for (const event of events) this.#socket.off(event, this.#onEvent)
  }
}
