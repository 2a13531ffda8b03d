type Waiting = { key: string; go: () => void }

type Run = {
  /** Whose it is: of one there are at most `ofOne` at a time, so that the other lanes are left to others. */
  key?: string | undefined
  /** Whoever waits when this aborts waits no longer, and nothing is done. */
  signal?: AbortSignal
}

/** Lets at most `atOnce` pieces of work run at one time; the others wait in the order in which they came. */
export class Lanes {
  readonly #atOnce: number
  readonly #ofOne: number
  readonly #waiting: Waiting[] = []
  /** How many run, by their keys. */
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

  /** The first that there is room for has its lane before anybody else can ask. */
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
