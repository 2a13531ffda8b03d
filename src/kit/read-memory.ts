// The read buffer of one connection. The buffer grows if the consumer is fast. A common budget for large buffers limits the memory
// of many slow consumers.

/** Free bytes before each piece of data. The consumer may write a header there, to send both without copying. */
const headroomBytes = 16

const leastBytes = 16 * 1024

/** Maximum number of bytes of all large buffers of this program together, without each connection's small buffer. */
const budgetBytes = 8 * 1024 * 1024
/**
 * A connection gets at most an eighth of the free budget for its buffer, so that later connections get a large buffer
 * too.
 */
const shareOfRest = 8

let lentBytes = 0

const memoryOf = (bytes: number): Buffer => Buffer.allocUnsafeSlow(headroomBytes + bytes).subarray(headroomBytes)

/** The large buffer is freed after this many reads in a row whose bytes fit into the small buffer. */
const littleReads = 8

export class ReadMemory {
  readonly #small = memoryOf(leastBytes)
  #large: Buffer | undefined
  #littleReads = 0
  #isClosed = false

  get bytes(): Buffer {
    return this.#large ?? this.#small
  }

  /**
   * Adapts the size of the buffer after a read of `size` bytes, up to `mostBytes`. The caller must no longer use the bytes of that
   * read, because the buffer may be replaced.
   */
  fit(size: number, mostBytes: number): void {
    this.#littleReads = size > leastBytes ? 0 : this.#littleReads + 1
    if (size === this.bytes.length) this.#grow(mostBytes)
    else if (this.#littleReads >= littleReads) this.shrink()
  }

  #grow(mostBytes: number): void {
    const bytes = this.bytes.length * 4
    const rest = budgetBytes - lentBytes + (this.#large?.length ?? 0)
    if (this.#isClosed || bytes > mostBytes || bytes > rest / shareOfRest) return
    this.shrink()
    this.#large = memoryOf(bytes)
    lentBytes += bytes
  }

  shrink(): void {
    lentBytes -= this.#large?.length ?? 0
    this.#large = undefined
    this.#littleReads = 0
  }

  close(): void {
    this.#isClosed = true
    this.shrink()
  }
}
