// A budget: an amount, for example of bytes, that several owners share. It can limit what each owner holds, and what all owners
// hold together.

type Limits = {
  /** Maximum amount that one owner may hold at a time. Default: no limit. */
  each?: number
  /** Maximum amount that all owners together may hold at a time. Default: no limit. */
  all?: number
  /** The amount that each owner gets even if other owners have used the whole budget. Default: 0. */
  sure?: number
  /**
   * Maximum that an owner may hold after a take, as a multiple of the amount that is then still free. With 1, the owner may hold
   * as much as is still free; with 2, twice as much. Later takes of other owners may leave less free. Default: no limit.
   */
  ofFree?: number
}

export class Budget<Owner = string> {
  readonly #limits: Limits
  readonly #held = new Map<Owner, number>()
  #all = 0

  constructor(limits: Limits) {
    this.#limits = limits
  }

  has(owner: Owner): boolean {
    return this.#held.has(owner)
  }

  /**
   * Takes the amount for an owner. If less is free, takes nothing and returns false. Each successful `take` needs exactly
   * one `give`.
   */
  take(owner: Owner, amount = 1): boolean {
    if (amount > this.#roomFor(owner)) return false
    this.#add(owner, amount)
    return true
  }

  /** Takes the amount for an owner, or as much of it as is free. Returns how much was taken, which the caller must `give` back. */
  takeUpTo(owner: Owner, amount: number): number {
    const taken = Math.max(0, Math.min(amount, this.#roomFor(owner)))
    this.#add(owner, taken)
    return taken
  }

  give(owner: Owner, amount = 1): void {
    this.#add(owner, -amount)
  }

  #roomFor(owner: Owner): number {
    const { each = Infinity, all = Infinity, sure = 0, ofFree } = this.#limits
    const held = this.#held.get(owner) ?? 0
    const free = all - this.#all
    const shared = ofFree === undefined ? free : Math.ceil((free * ofFree - held) / (1 + ofFree))
    return Math.min(each - held, Math.max(shared, sure - held))
  }

  #add(owner: Owner, amount: number): void {
    const held = (this.#held.get(owner) ?? 0) + amount
    if (held > 0) this.#held.set(owner, held)
    else this.#held.delete(owner)
    this.#all += amount
  }
}
