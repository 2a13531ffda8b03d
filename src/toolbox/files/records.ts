// Cuts a stream into records, and keeps at most `bound` bytes of each.

/**
 * Maximum size of an answer that lists files or matches of a search, in bytes of JSON. A list is cut where it exceeds this size.
 */
export const answerBytes = 16 * 1024 * 1024

export class Records {
  readonly #ends: readonly number[]
  readonly #bound: number
  #begun: Buffer[] = []
  #size = 0
  #count = 0

  /**
   * `ends`: the bytes that end records, in turn. With two bytes, the first ends the records 1, 3, 5 and so on, and the second ends
   * the records 2, 4, 6 and so on.
   */
  constructor(ends: readonly number[], bound: number) {
    this.#ends = ends
    this.#bound = bound
  }

  /** Returns the records that are now complete, without their end bytes. A record longer than `bound` is cut to its beginning. */
  *push(data: Buffer): Generator<Buffer> {
    for (let from = 0; from < data.length; ) {
      const at = data.indexOf(this.#ends[this.#count % this.#ends.length]!, from)
      const piece = data.subarray(from, at < 0 ? data.length : at)
      const kept = piece.subarray(0, this.#bound - this.#size)
      if (kept.length > 0) this.#begun.push(kept)
      this.#size += kept.length
      if (at < 0) return
      const record = Buffer.concat(this.#begun)
      this.#begun = []
      this.#size = 0
      this.#count++
      from = at + 1
      yield record
    }
  }
}
