// Counts the open uploads of this process. Each leaves objects in the object store, even if no data was sent. So the number of
// open uploads is limited.
import { Budget } from '#src/kit/budget.ts'
import { Problem } from '#src/problems.ts'
import { type ContextName, partsOf } from './keys.ts'
import type { ContextLimits } from './limits.ts'

export class OpenUploads {
  readonly #keptMs: number
  readonly #now: () => number
  readonly #bound: Budget
  /** Open uploads that this process began. Key: `partsOf(name, id)`. The most recently used upload is last. */
  readonly #open = new Map<string, { organizationId: string; at: number }>()

  constructor({ uploadsOfOrganization, uploads, uploadKeptMs }: ContextLimits, now: () => number) {
    this.#bound = new Budget({ each: uploadsOfOrganization, all: uploads })
    this.#keptMs = uploadKeptMs
    this.#now = now
  }

  begin(name: ContextName, id: string): void {
    const { organizationId } = name
    this.#forgetLeft()
    if (!this.#bound.take(organizationId))
      throw new Problem(
        'rate_limited',
        `Too many uploads are open. Complete or abort some of them. An upload without new data ends after ${this.#keptMs / 3_600_000} hours.`,
      )
    this.#open.set(partsOf(name, id), { organizationId, at: this.#now() })
  }

  hear(name: ContextName, id: string): void {
    const key = partsOf(name, id)
    const open = this.#open.get(key)
    if (open === undefined) return
    this.#open.delete(key)
    this.#open.set(key, { ...open, at: this.#now() })
  }

  end(name: ContextName, id: string): void {
    this.#forget(partsOf(name, id))
  }

  #forgetLeft() {
    for (const [key, { at }] of this.#open) {
      if (this.#now() - at < this.#keptMs) return
      this.#forget(key)
    }
  }

  #forget(key: string) {
    const open = this.#open.get(key)
    if (open === undefined) return
    this.#open.delete(key)
    this.#bound.give(open.organizationId)
  }
}
