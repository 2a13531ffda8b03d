// Counts what is under way, for each of many and together, and takes no more than so many.

export type Most = { each: number; all: number }

export class Bound {
  readonly #most: Most
  readonly #counts = new Map<string, number>()
  #all = 0

  constructor(most: Most) {
    this.#most = most
  }

  /** False: there is no room. What was taken is given back once. */
  take(key: string): boolean {
    const count = this.#counts.get(key) ?? 0
    if (count >= this.#most.each || this.#all >= this.#most.all) return false
    this.#counts.set(key, count + 1)
    this.#all++
    return true
  }

  give(key: string): void {
    const count = this.#counts.get(key) ?? 0
    if (count > 1) this.#counts.set(key, count - 1)
    else this.#counts.delete(key)
    this.#all--
  }
}
