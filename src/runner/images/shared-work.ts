// Runs work once for all callers that request it at the same time. If a caller cancels, the work continues for the other
// callers. It is cancelled when all callers have cancelled.

type Subscriber<Said> = { onSaid: (said: Said) => void; signal?: AbortSignal | undefined }

type Doing<Said, Result, Used> = {
  start: (say: (said: Said) => void, signal: AbortSignal) => Promise<Result>
  /** Called for each caller. */
  use: (result: Result) => Promise<Used>
  /** Called once, when the last `use` has ended. */
  release: (result: Result) => void
}

type Work<Said, Result> = {
  result: Promise<Result>
  listeners: Set<(said: Said) => void>
  wantedBy: number
  cancel: AbortController
}

export class SharedWork<Said, Result> {
  readonly #under = new Map<string, Work<Said, Result>>()

  async run<Used>(
    key: string,
    { onSaid, signal }: Subscriber<Said>,
    { start, use, release }: Doing<Said, Result, Used>,
  ): Promise<Used> {
    signal?.throwIfAborted()
    let work = this.#under.get(key)
    if (work === undefined) {
      work = this.#begin(key, start)
      this.#under.set(key, work)
    }
    const mine = work
    mine.wantedBy++
    mine.listeners.add(onSaid)
    try {
      return await use(await untilAborted(mine.result, signal))
    } finally {
      mine.listeners.delete(onSaid)
      if (--mine.wantedBy === 0) {
        mine.cancel.abort()
        if (this.#under.get(key) === mine) this.#under.delete(key)
        // Waits until the cancelled work has ended. The entry is already removed, so the next caller starts new work.
        await mine.result.then(release, () => {})
      }
    }
  }

  #begin(key: string, start: Doing<Said, Result, never>['start']): Work<Said, Result> {
    const listeners = new Set<(said: Said) => void>()
    const cancel = new AbortController()
    const say = (said: Said) => {
      for (const listener of listeners) listener(said)
    }
    const result = start(say, cancel.signal)
    // A failure goes to all callers that wait. The next caller starts new work.
    result.catch(() => {
      if (this.#under.get(key)?.result === result) this.#under.delete(key)
    })
    return { result, listeners, wantedBy: 0, cancel }
  }
}

const untilAborted = <T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> => {
  if (signal === undefined) return promise
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason)
    signal.addEventListener('abort', leave, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
  })
}
