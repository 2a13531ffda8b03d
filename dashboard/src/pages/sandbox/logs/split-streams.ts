export type Stream = 'stdout' | 'stderr'

const markLength = 3
const streams: Record<number, Stream> = { 1: 'stdout', 2: 'stderr' }

/**
 * Separates stdout from stderr in a followed log. A mark of three bytes begins each part: 01 01 01 for stdout, 02 02 02 for stderr.
 * A mark or a character may be split over two messages.
 */
export class StreamSplitter {
  readonly #take: (stream: Stream, text: string) => void
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  #stream: Stream = 'stdout'
  /** The last bytes of the previous message, if a mark may begin with them. A mark is 01 01 01 or 02 02 02. */
  #held: Uint8Array = new Uint8Array()

  constructor(take: (stream: Stream, text: string) => void) {
    this.#take = take
  }

  push(message: Uint8Array): void {
    const bytes = new Uint8Array(this.#held.length + message.length)
    bytes.set(this.#held)
    bytes.set(message, this.#held.length)
    let from = 0
    let equal = 0
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]!
      if (streams[byte] === undefined) equal = 0
      else equal = byte === bytes[at - 1] && equal > 0 ? equal + 1 : 1
      if (equal < markLength) continue
      this.#emit(bytes.subarray(from, at + 1 - markLength))
      this.#stream = streams[byte]!
      from = at + 1
      equal = 0
    }
    this.#emit(bytes.subarray(from, bytes.length - equal))
    this.#held = bytes.slice(bytes.length - equal)
  }

  #emit(bytes: Uint8Array): void {
    const text = this.#decoders[this.#stream].decode(bytes, { stream: true })
    if (text !== '') this.#take(this.#stream, text)
  }
}
