// The memory that one connection is read into. It starts small and grows while whoever takes the bytes keeps up. All connections
// of a program together have a budget for what goes beyond the small piece, so that many slow readers cannot hold much.

/** These bytes before each piece are the taker's to write over, which saves a copy where something stands before it. */
const headroomBytes = 16

const leastBytes = 16 * 1024

/** For all connections of this program. The small piece of each is not counted. */
const budgetBytes = 8 * 1024 * 1024
/** A connection gets this share of what is left, so that there is some for those that come later. */
const shareOfRest = 8

let lentBytes = 0

const memoryOf = (bytes: number): Buffer => Buffer.allocUnsafeSlow(headroomBytes + bytes).subarray(headroomBytes)

/** Reads in a row that would have fitted the small piece, after which the large one is let go. */
const littleReads = 8

export class ReadMemory {
  readonly #small = memoryOf(leastBytes)
  #large: Buffer | undefined
  #littleReads = 0
  #isClosed = false

  get bytes(): Buffer {
    return this.#large ?? this.#small
  }

  /** After a read of so many bytes that nobody holds any more: makes the memory fit, up to `mostBytes`. */
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
