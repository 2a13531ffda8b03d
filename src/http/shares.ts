// Counts the bytes that each owner has in memory. If all owners together have too many, entries of the owner with the most bytes
// are removed.

export class Shares<Key> {
  /** The entries that count for owners, such as answers that callers have not read yet. The oldest entry comes first. */
  readonly #held = new Map<Key, { owner: string; bytes: number }>()
  readonly #mostBytes: number
  #total = 0

  constructor(mostBytes = 256 * 1024 ** 2) {
    this.#mostBytes = mostBytes
  }

  /** Sets the size of the entry `key` of an owner. If the entry is new, adds it. */
  put(key: Key, owner: string, bytes: number): void {
    this.#total += bytes - (this.#held.get(key)?.bytes ?? 0)
    this.#held.set(key, { owner, bytes })
  }

  remove(key: Key): void {
    this.#total -= this.#held.get(key)?.bytes ?? 0
    this.#held.delete(key)
  }

  /**
   * While all entries together exceed the limit, evicts the oldest entry of the owner with the most bytes, and calls
   * `cutOff` for it. `except`: an entry that is never evicted, although its bytes count.
   */
  fit(cutOff: (key: Key) => void, except?: Key): void {
    while (this.#total > this.#mostBytes) {
      const giving = this.#oldestOfLargest(except)
      if (giving === undefined) return
      this.remove(giving)
      cutOff(giving)
    }
  }

  #oldestOfLargest(except: Key | undefined): Key | undefined {
    const bytesOf = new Map<string, number>()
    for (const { owner, bytes } of this.#held.values()) bytesOf.set(owner, (bytesOf.get(owner) ?? 0) + bytes)
    let largest: { key: Key; bytes: number } | undefined
    for (const [key, { owner }] of this.#held) {
      const bytes = bytesOf.get(owner) ?? 0
      if (key !== except && bytes > (largest?.bytes ?? 0)) largest = { key, bytes }
    }
    return largest?.key
  }
}
