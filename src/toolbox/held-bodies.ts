// The body of a call stays in the gate's memory until it was passed on to the sandbox. A sandbox that does not read can delay
// this for a long time. So the memory of waiting bodies is limited, per sandbox and in total.
import { Budget } from '#src/kit/budget.ts'
import { Problem } from '#src/problems.ts'

/**
 * Limits of the bodies of requests that the gate keeps in memory, in characters: per sandbox, in total, and the amount that each
 * sandbox always gets.
 */
export const heldBodies = new Budget({ each: 16 * 1024 * 1024, all: 256 * 1024 * 1024, sure: 64 * 1024 })

/**
 * Number of characters that is added to the length of each JSON value's text, because a parsed value takes more memory than its
 * text.
 */
const valueSize = 32

const sizeOf = (value: unknown): number => {
  if (typeof value === 'string') return valueSize + value.length
  if (typeof value !== 'object' || value === null) return valueSize
  return Object.entries(value).reduce((sum, [name, item]) => sum + name.length + sizeOf(item), valueSize)
}

/**
 * The body of a request. `letGo` frees the body's memory before the call ends. A handler that runs for long calls it when it no
 * longer needs the body, and must keep no other reference to the body.
 */
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
      throw new Problem('rate_limited', 'Too much waits to be passed on to this sandbox. Try again.')
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
