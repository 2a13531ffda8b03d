// Whose turn it is where few can be served at a time: of those who wait, the first of whomever least is done for just now. So
// many who wait for one hold up only that one.
import type { Bound } from '#src/kit/bound.ts'
import { Problem } from '#src/problems.ts'

type Waiting = { owner: string; begin: () => void }

export class Turns {
  readonly #atOnce: number
  /** Places of those who wait. */
  readonly #places: Bound
  readonly #waiting: Waiting[] = []
  /** The owner of each that has its turn. */
  readonly #running: string[] = []

  constructor(atOnce: number, places: Bound) {
    this.#atOnce = atOnce
    this.#places = places
  }

  /** Waits for a turn, which lasts until it is disposed of. Throws a 429 where too many wait, and the signal's reason. */
  async take(owner: string, signal: AbortSignal): Promise<Disposable> {
    if (this.#running.length < this.#atOnce) this.#running.push(owner)
    else {
      if (!this.#places.take(owner)) throw new Problem('rate_limited', 'Too much TypeScript waits to be compiled.')
      try {
        await this.#wait(owner, signal)
      } finally {
        this.#places.give(owner)
      }
    }
    return { [Symbol.dispose]: () => this.#end(owner) }
  }

  #wait(owner: string, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const begin = () => {
      signal.removeEventListener('abort', leave)
      resolve()
    }
    const waiting = { owner, begin }
    const leave = () => {
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
      reject(signal.reason)
    }
    this.#waiting.push(waiting)
    signal.addEventListener('abort', leave, { once: true })
    return promise
  }

  /** Hands the turn to the next, who has it from now on. */
  #end(owner: string): void {
    this.#running.splice(this.#running.indexOf(owner), 1)
    const countOf = ({ owner }: Waiting) => this.#running.filter((running) => running === owner).length
    const next = this.#waiting.toSorted((a, b) => countOf(a) - countOf(b))[0]
    if (next === undefined) return
    this.#waiting.splice(this.#waiting.indexOf(next), 1)
    this.#running.push(next.owner)
    next.begin()
  }
}
