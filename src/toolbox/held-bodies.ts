// Limits the memory of request bodies that wait until a sandbox reads them. A sandbox that does not read makes them wait long.
import { Budget } from '#src/kit/budget.ts'
import { Problem } from '#src/problems.ts'

/** Limits of the request bodies in memory, in characters: per sandbox, in total, and what each sandbox always gets. */
export const heldBodies = new Budget({ each: 16 * 1024 * 1024, all: 256 * 1024 * 1024, sure: 64 * 1024 })

/** Added to the length of each JSON value's text: a parsed value takes more memory than its text. */
const valueSize = 32

const sizeOf = (value: unknown): number => {
  if (typeof value === 'string') return valueSize + value.length
  if (typeof value !== 'object' || value === null) return valueSize
  return Object.entries(value).reduce((sum, [name, item]) => sum + name.length + sizeOf(item), valueSize)
}

/** The body of a request. A long handler calls `letGo` when it no longer needs the body, and must keep no other reference to it. */
export type Given<Body> = { readonly body: Body; letGo?: () => void }

/** Holds the only reference to a body, so that `letGo` frees its memory. */
export class HeldBody<Body> implements Disposable {
  readonly #sandboxId: string
  readonly #size: number
  #body: { is: Body } | undefined

  /** Adds the size of the body to the total of its sandbox. Throws a 429 if the limits are exceeded. */
  constructor(sandboxId: string, body: Body) {
    this.#sandboxId = sandboxId
    this.#size = sizeOf(body)
    if (!heldBodies.take(sandboxId, this.#size)) {
      throw new Problem('rate_limited', 'Too much data is waiting to be sent to this sandbox. Try again.')
    }
    this.#body = { is: body }
  }

  get body(): Body {
    if (this.#body === undefined) throw new Error('the body of this call was let go')
    return this.#body.is
  }

  letGo(): void {
    if (this.#body === undefined) return
    this.#body = undefined
    heldBodies.give(this.#sandboxId, this.#size)
  }

  [Symbol.dispose](): void {
    this.letGo()
  }
}
