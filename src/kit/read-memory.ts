// The read buffer of one connection. It starts small and grows while the consumer of the bytes keeps up. All connections of
// a program share a budget for large buffers, so that many slow consumers cannot hold much memory.

/** Bytes before each piece that the consumer may overwrite, to put a header there without a copy. */
const headroomBytes = 16

const leastBytes = 16 * 1024

/**
 * Bytes of the large buffers of all connections of this program. The small buffer of each connection is not counted.
 */
const budgetBytes = 8 * 1024 * 1024
/** A connection gets at most this fraction of the free budget, an eighth, so that later connections get memory too. */
const shareOfRest = 8

let lentBytes = 0

const memoryOf = (bytes: number): Buffer => Buffer.allocUnsafeSlow(headroomBytes + bytes).subarray(headroomBytes)

/** Number of consecutive reads that fit into the small buffer, after which the large buffer is freed. */
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
   * Adapts the buffer after a read of `size` bytes, up to `mostBytes`. The caller must no longer use the bytes of that
   * read.
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
