// Takes bytes off a socket as they are asked for: a number of them, or whatever has come. Reads no further ahead than the socket
// does by itself, and hands the socket on, in the middle of its stream, to whoever reads it next.
import type { Socket } from 'node:net'

/** The stream has ended in the middle of what was asked for, or the connection has failed. */
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

  /** `undefined` where the stream ends before the first byte of them. Throws `BrokenStream` where it ends behind that. */
  async exactly(size: number): Promise<Buffer | undefined> {
    if (size === 0) return Buffer.alloc(0)
    const bytes = await this.#next(size)
    // At its end a stream gives what is left of it.
    if (bytes !== undefined && bytes.length !== size) throw new BrokenStream('the stream ended in the middle')
    return bytes
  }

  /** `undefined` at the end of the stream. */
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

  /** Once: a stream tells each new listener of the bytes it has, even of too few, and then nothing else would have its turn. */
  #listen() {
    if (this.#isListening) return
    this.#isListening = true
    for (const event of events) this.#socket.on(event, this.#onEvent)
  }

  /** Somebody else reads from here on. */
  release() {
    this.#isListening = false
    for (const event of events) this.#socket.off(event, this.#onEvent)
  }
}
