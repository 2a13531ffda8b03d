// Cuts a stream into records, and keeps at most `bound` bytes of each record.

/** Maximum size of a list of files or matches, in bytes of JSON. A longer list is cut. */
export const answerBytes = 16 * 1024 * 1024

export class Records {
  readonly #ends: readonly number[]
  readonly #bound: number
  #begun: Buffer[] = []
  #size = 0
  #count = 0

  /**
   * `ends`: the bytes that end records. If there are two, the first byte ends the 1st, 3rd, 5th record, and the second byte ends
   * the 2nd, 4th, 6th.
   */
  constructor(ends: readonly number[], bound: number) {
    this.#ends = ends
    this.#bound = bound
  }

  /** Returns the complete records, without their end bytes, each cut to `bound` bytes. */
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
