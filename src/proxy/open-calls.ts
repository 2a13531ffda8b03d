// How many calls an organization has open at once, so that nobody keeps out the others.
import { Problem } from '#src/problems.ts'

export class OpenCalls {
  readonly #most: number
  readonly #open = new Map<string, number>()

  constructor(most: number) {
    this.#most = most
  }

  /** Throws where it has as many as it may; answers what is called once when this one is over. */
  enter(organizationId: string): () => void {
    const open = this.#open.get(organizationId) ?? 0
    if (open >= this.#most) throw new Problem('rate_limited', 'This organization has too many calls open at once.')
    this.#open.set(organizationId, open + 1)
    return () => {
      const left = (this.#open.get(organizationId) ?? 0) - 1
      if (left > 0) this.#open.set(organizationId, left)
      else this.#open.delete(organizationId)
    }
  }
}
