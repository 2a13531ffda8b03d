// Limits how much is in use at the same time: per owner and for all owners together.

type Most = {
  each: number
  all: number
  /** Share that each owner gets even if the others have used all the room. Default: 0. */
  sure?: number
}

export const unbounded: Most = { each: Infinity, all: Infinity }

export class Bound<Owner = string> {
  readonly #most: Most
  readonly #counts = new Map<Owner, number>()
  #all = 0

  constructor(most: Most) {
    this.#most = most
  }

  has(key: Owner): boolean {
    return this.#counts.has(key)
  }

  /** Returns false if there is no room. Each successful `take` needs exactly one `give`. */
  take(key: Owner, amount = 1): boolean {
    const count = (this.#counts.get(key) ?? 0) + amount
    const { each, all, sure = 0 } = this.#most
    if (count > each || (this.#all + amount > all && count > sure)) return false
    this.#counts.set(key, count)
    this.#all += amount
    return true
  }

  give(key: Owner, amount = 1): void {
    const count = (this.#counts.get(key) ?? 0) - amount
    if (count > 0) this.#counts.set(key, count)
    else this.#counts.delete(key)
    this.#all -= amount
  }
}
