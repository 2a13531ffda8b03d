type Waiting<Item> = { item: Item; resolve: () => void; reject: (error: unknown) => void }

/** How each item of a batch went, in the order of the items. */
export type Outcomes = readonly PromiseSettledResult<unknown>[]

/**
 * Does for many at a time what costs the same for one. An item that finds nothing under way begins at once, alone. What is asked
 * for meanwhile waits, and is done together next. So whatever an item's caller did before it asked, its batch begins after that.
 */
export class Batches<Item> {
  readonly #work: (items: readonly Item[]) => Promise<Outcomes>
  readonly #most: number
  #waiting: Waiting<Item>[] = []
  #isRunning = false

  /** `most`: items of one batch. */
  constructor(most: number, work: (items: readonly Item[]) => Promise<Outcomes>) {
    this.#most = most
    this.#work = work
  }

  run(item: Item): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject })
      if (!this.#isRunning) void this.#runAll()
    })
  }

  async #runAll() {
    this.#isRunning = true
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#most)
      try {
        const outcomes = await this.#work(batch.map(({ item }) => item))
        for (const [at, { resolve, reject }] of batch.entries()) {
          const outcome = outcomes[at]
          if (outcome?.status === 'fulfilled') resolve()
          else reject(outcome?.reason)
        }
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    this.#isRunning = false
  }
}
