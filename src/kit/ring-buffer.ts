/** Keeps the last `capacity` bytes of what is added to it. `capacity` is at least 1. */
export class RingBuffer {
  readonly #block: Buffer
  #total = 0

  constructor(capacity: number) {
    this.#block = Buffer.allocUnsafeSlow(capacity)
  }

  get keptBytes(): number {
    return Math.min(this.#total, this.#block.length)
  }

  /** Number of bytes that were ever added, including those that are no longer kept. */
  get totalBytes(): number {
    return this.#total
  }

  add(data: Uint8Array): void {
    const { length } = this.#block
    const last = data.subarray(Math.max(0, data.length - length))
    const at = (this.#total + data.length - last.length) % length
    const first = last.subarray(0, length - at)
    this.#block.set(first, at)
    this.#block.set(last.subarray(first.length), 0)
    this.#total += data.length
  }

  /** Returns a copy of the kept bytes, oldest byte first. */
  bytes(): Buffer {
    const begin = this.#total > this.#block.length ? this.#total % this.#block.length : 0
    const older = this.#block.subarray(begin, this.keptBytes)
    return Buffer.concat([older, this.#block.subarray(0, begin)])
  }
}
