/** A short queue between one producer and one consumer. `give` waits while the queue is full. */
export class Handoff<T> implements AsyncIterableIterator<T> {
  readonly #capacity: number
  readonly #abandoned: () => void
  #items: T[] = []
  #ended = false
  #error: unknown
  #wakeTaker: (() => void) | undefined
  #wakeGiver: (() => void) | undefined

  /** The queue calls `abandoned` when the consumer leaves its loop and takes no more items. */
  constructor(capacity: number, abandoned: () => void) {
    this.#capacity = capacity
    this.#abandoned = abandoned
  }

  async give(item: T): Promise<void> {
    while (this.#items.length >= this.#capacity && !this.#ended) {
      await new Promise<void>((resolve) => {
        this.#wakeGiver = resolve
      })
    }
    if (this.#ended) return
    this.#items.push(item)
    this.#wakeTaker?.()
  }

  /** Ends the queue. The consumer still gets the remaining items, and then `error` if there is one. */
  end(error?: unknown): void {
    if (this.#ended) return
    this.#ended = true
    this.#error = error
    this.#wakeTaker?.()
    this.#wakeGiver?.()
  }

  async next(): Promise<IteratorResult<T>> {
    while (this.#items.length === 0 && !this.#ended) {
      await new Promise<void>((resolve) => {
        this.#wakeTaker = resolve
      })
    }
    const item = this.#items.shift()
    this.#wakeGiver?.()
    if (item !== undefined) return { done: false, value: item }
    if (this.#error !== undefined) throw this.#error
    return { done: true, value: undefined }
  }

  async return(): Promise<IteratorResult<T>> {
    this.#items = []
    this.end()
    this.#abandoned()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
