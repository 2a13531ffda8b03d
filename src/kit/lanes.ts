type Waiting = { key: string; go: () => void }

type Run = {
  /** Owner of the work. At most `ofOne` pieces of one owner run at a time, so that other owners find a lane. */
  key?: string | undefined
  /** If it aborts while the work waits, the work is not run and the call rejects. */
  signal?: AbortSignal
}

/** Runs at most `atOnce` pieces of work at a time. The others wait in the order in which they came. */
export class Lanes {
  readonly #atOnce: number
  readonly #ofOne: number
  readonly #waiting: Waiting[] = []
  /** Number of running pieces by key. */
  readonly #running = new Map<string, number>()
  #all = 0

  constructor(atOnce: number, ofOne = atOnce) {
    this.#atOnce = atOnce
    this.#ofOne = ofOne
  }

  async run<T>(work: () => Promise<T>, { key = '', signal }: Run = {}): Promise<T> {
    signal?.throwIfAborted()
    if (this.#hasRoomFor(key)) this.#count(key, 1)
    else await this.#turn(key, signal)
    try {
      return await work()
    } finally {
      this.#count(key, -1)
      this.#goOn()
    }
  }

  #hasRoomFor(key: string): boolean {
    return this.#all < this.#atOnce && (this.#running.get(key) ?? 0) < this.#ofOne
  }

  #turn(key: string, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
        reject(signal?.reason)
      }
      const go = () => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      const waiting = { key, go }
      this.#waiting.push(waiting)
      signal?.addEventListener('abort', leave, { once: true })
    })
  }

  /** Gives the free lane to the first waiting piece that may run, before a new caller can take it. */
  #goOn() {
    const at = this.#waiting.findIndex(({ key }) => this.#hasRoomFor(key))
    const [next] = at < 0 ? [] : this.#waiting.splice(at, 1)
    if (next === undefined) return
    this.#count(next.key, 1)
    next.go()
  }

  #count(key: string, by: 1 | -1) {
    const count = (this.#running.get(key) ?? 0) + by
    this.#all += by
    if (count === 0) this.#running.delete(key)
    else this.#running.set(key, count)
  }
}
