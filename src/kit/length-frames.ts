// Messages on a byte stream. Each message is its length (32 bits, little-endian), followed by its bytes.
import type { Socket } from 'node:net'
import { BrokenStream, ByteReader } from './byte-reader.ts'

export { BrokenStream } from './byte-reader.ts'

const headBytes = 4

export const frameOf = (message: Uint8Array): Buffer => {
  const frame = Buffer.allocUnsafe(headBytes + message.length)
  frame.writeUInt32LE(message.length)
  frame.set(message, headBytes)
  return frame
}

export const jsonFrameOf = (message: unknown): Buffer => frameOf(Buffer.from(JSON.stringify(message)))

/** Writes one message. Resolves when the socket can take more, or is closed. */
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

/**
 * Reads messages from a socket, and leaves the bytes after a message in the socket. Throws `BrokenStream` for an invalid or
 * incomplete message.
 */
export class Frames {
  readonly #bytes: ByteReader
  readonly #mostBytes: number

  constructor(socket: Socket, mostBytes: number) {
    this.#bytes = new ByteReader(socket)
    this.#mostBytes = mostBytes
  }

  /** Reads the next message. Returns undefined at the end of the stream. */
  async next(): Promise<Buffer | undefined> {
    const head = await this.#bytes.exactly(headBytes)
    if (head === undefined) return undefined
    const length = head.readUInt32LE()
    if (length > this.#mostBytes) throw new BrokenStream('a message is too long')
    const message = await this.#bytes.exactly(length)
    if (message === undefined) throw new BrokenStream('the other side has gone')
    return message
  }
}
