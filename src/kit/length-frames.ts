// Messages on a byte stream: each is its length as 32 bits, little-endian, and its bytes.
import type { Socket } from 'node:net'

const headBytes = 4

/** The other side has sent something that is no message, or has gone in the middle of one. */
export class BrokenStream extends Error {
  override name = 'BrokenStream'
}

export const frameOf = (message: Uint8Array): Buffer => {
  const frame = Buffer.allocUnsafe(headBytes + message.length)
  frame.writeUInt32LE(message.length)
  frame.set(message, headBytes)
  return frame
}

export const jsonFrameOf = (message: unknown): Buffer => frameOf(Buffer.from(JSON.stringify(message)))

/** Settles when more may be written. */
export const sendFrame = async (socket: Socket, frame: Uint8Array): Promise<void> => {
  if (socket.destroyed) throw new BrokenStream('the connection is closed')
  if (!socket.write(frame)) await anyOf(socket, ['drain', 'close'])
}

const anyOf = (socket: Socket, events: readonly string[]): Promise<void> =>
  new Promise((resolve) => {
    const settle = () => {
      for (const event of events) socket.off(event, settle)
      resolve()
    }
    for (const event of events) socket.on(event, settle)
  })

/** Reads no further ahead than the message that is asked for. */
export class Frames {
  readonly #socket: Socket
  readonly #mostBytes: number
  #isListening = false
  #wake: (() => void) | undefined

  constructor(socket: Socket, mostBytes: number) {
    this.#socket = socket
    this.#mostBytes = mostBytes
  }

  /** Nothing at the end of the stream. */
  async next(): Promise<Buffer | undefined> {
    const head = await this.#read(headBytes)
    if (head === undefined) return undefined
    const length = head.readUInt32LE()
    if (length > this.#mostBytes) throw new BrokenStream('a message is too long')
    const message = length === 0 ? Buffer.alloc(0) : await this.#read(length)
    if (message === undefined) throw new BrokenStream('the other side has gone')
    return message
  }

  async #read(length: number): Promise<Buffer | undefined> {
    const socket = this.#socket
    for (;;) {
      const bytes = socket.read(length) as Buffer | null
      if (bytes?.length === length) return bytes
      if (bytes !== null) throw new BrokenStream('the other side has gone')
      if (socket.readableEnded) return undefined
      if (socket.destroyed) throw new BrokenStream('the other side has gone', { cause: socket.errored })
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
    for (const event of ['readable', 'end', 'close']) this.#socket.on(event, () => this.#wake?.())
  }
}
