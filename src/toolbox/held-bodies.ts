// What the bodies of calls bring lies in the gate's memory until it has been passed on, and a sandbox that does not listen may
// let it lie for long. So what is held has a bound: of each sandbox, and of all of them.
import { Bound } from '#src/kit/bound.ts'
import { Problem } from '#src/problems.ts'

/** In characters. So few as are sure are taken of a sandbox also where the others have taken all the room. */
export const heldBodies = new Bound({ each: 16 * 1024 * 1024, all: 256 * 1024 * 1024, sure: 64 * 1024 })

/** What a value takes besides its characters, about. */
const valueSize = 32

const sizeOf = (value: unknown): number => {
  if (typeof value === 'string') return valueSize + value.length
  if (typeof value !== 'object' || value === null) return valueSize
  return Object.entries(value).reduce((sum, [name, item]) => sum + name.length + sizeOf(item), valueSize)
}

/** What a call has brought. Whoever goes on for long calls `letGo` once `body` was passed on, and keeps nothing of it. */
export type Given<Body> = { readonly body: Body; letGo?: () => void }

/** A body that is kept nowhere else, so that letting go of it frees what it takes. */
export class HeldBody<Body> implements Disposable {
  readonly #sandboxId: string
  readonly #size: number
  #body: { is: Body } | undefined

  /** Throws a 429 where there is no room. */
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
