// Fair turns where only a few calls run at once. The next turn goes to the owner with the fewest running calls, first come first
// served. So an owner with many waiting calls delays only itself.
import type { Bound } from '#src/kit/bound.ts'
import { Problem } from '#src/problems.ts'

type Waiting = { owner: string; begin: () => void }

export class CompilerQueue {
  readonly #atOnce: number
  /** Limits of waiting calls. */
  readonly #places: Bound
  readonly #waiting: Waiting[] = []
  /** The owner of each running call. */
  readonly #running: string[] = []

  constructor(atOnce: number, places: Bound) {
    this.#atOnce = atOnce
    this.#places = places
  }

  /** Waits for a turn, which lasts until it is disposed of. Throws a 429 if too many calls wait, or the signal's reason. */
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

  /** Ends a turn and passes it to the next waiting call. */
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
