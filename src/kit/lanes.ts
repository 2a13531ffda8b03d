/** Lets at most `atOnce` pieces of work run at one time; the others wait in the order in which they came. */
export class Lanes {
  readonly #atOnce: number
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(atOnce: number) {
    this.#atOnce = atOnce
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#atOnce) this.#running += 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      // The next one takes over this one's lane.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running -= 1
    }
  }
}
