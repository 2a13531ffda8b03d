// Counts what is under way, for each of many and together, and takes no more than so many.

type Most = {
  each: number
  all: number
  /** Share that each has also where the others have taken all the room. Default: 0. */
  sure?: number
}

export const unbounded: Most = { each: Infinity, all: Infinity }

export class Bound {
  readonly #most: Most
  readonly #counts = new Map<string, number>()
  #all = 0

  constructor(most: Most) {
    this.#most = most
  }

  has(key: string): boolean {
    return this.#counts.has(key)
  }

  /** False: there is no room. What was taken is given back once. */
  take(key: string, amount = 1): boolean {
    const count = (this.#counts.get(key) ?? 0) + amount
    const { each, all, sure = 0 } = this.#most
    if (count > each || (this.#all + amount > all && count > sure)) return false
    this.#counts.set(key, count)
    this.#all += amount
    return true
  }

  give(key: string, amount = 1): void {
    const count = (this.#counts.get(key) ?? 0) - amount
    if (count > 0) this.#counts.set(key, count)
    else this.#counts.delete(key)
    this.#all -= amount
  }
}
