// Work for one key waits for earlier work for the same key; different keys do not wait for each other.

/** Limit of waiting calls for one key. More of them mean that a caller asks in a loop. */
const waitingLimit = 32

type Line = { last: Promise<unknown>; waiting: number }

export class OneAtATime {
  readonly #lines = new Map<string, Line>()

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(key) ?? { last: Promise.resolve(), waiting: 0 }
    if (line.waiting >= waitingLimit) throw new Error(`Too much is waiting for ${key}.`)
    this.#lines.set(key, line)
    line.waiting++
    const result = line.last.then(work, work)
    line.last = result.catch(() => {})
    try {
      return await result
    } finally {
      line.waiting--
      if (line.waiting === 0) this.#lines.delete(key)
    }
  }
}
