// Cuts a stream into records, and keeps no more of one than its bound.

/** An answer is at an end with the first of its parts that makes it longer than this, in JSON. */
export const answerBytes = 16 * 1024 * 1024

export class Records {
  readonly #ends: readonly number[]
  readonly #bound: number
  #begun: Buffer[] = []
  #size = 0
  #count = 0

  /** The bytes that end a first record, a second one, and so on, and then from the beginning. */
  constructor(ends: readonly number[], bound: number) {
    this.#ends = ends
    this.#bound = bound
  }

  /** The records that are complete now, without their ends; of a longer one its beginning. */
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
