// Counts bytes that are held in memory, by owner. When the memory is full, only the owner who holds the most bytes
// loses some.

export class Shares<Key> {
  /** The entries that owners hold, oldest first. */
  readonly #held = new Map<Key, { owner: string; bytes: number }>()
  readonly #mostBytes: number
  #total = 0

  constructor(mostBytes = 256 * 1024 ** 2) {
    this.#mostBytes = mostBytes
  }

  /** Sets the number of bytes that an owner holds for a key. The number may be larger or smaller than before. */
  put(key: Key, owner: string, bytes: number): void {
    this.#total += bytes - (this.#held.get(key)?.bytes ?? 0)
    this.#held.set(key, { owner, bytes })
  }

  remove(key: Key): void {
    this.#total -= this.#held.get(key)?.bytes ?? 0
    this.#held.delete(key)
  }

  /** Evicts entries until all remaining entries fit into the limit. The entry `except` is counted but never evicted. */
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
