type Waiting<Item> = { item: Item; resolve: () => void; reject: (error: unknown) => void }

/** What the work function returns for a batch: whether each item succeeded, in the order of the items. */
export type Outcomes = readonly PromiseSettledResult<unknown>[]

/**
 * Runs items in batches, for work that costs the same for many items as for one. If no batch is running, an item runs
 * immediately. Otherwise it waits for the next batch, or for a later one if more than `most` items wait.
 */
export class Batches<Item> {
  readonly #work: (items: readonly Item[]) => Promise<Outcomes>
  readonly #most: number
  #waiting: Waiting<Item>[] = []
  #isRunning = false

  /** `most`: largest number of items in one batch. */
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
