// Runs work once for all callers that request it at the same time. The work is cancelled when all callers have cancelled.
import { untilAborted } from '#src/kit/until-aborted.ts'

type Subscriber<Said> = { onSaid: (said: Said) => void; signal?: AbortSignal | undefined }

type Doing<Said, Result, Used> = {
  start: (say: (said: Said) => void, signal: AbortSignal) => Promise<Result>
  /** Called once for each caller, with the result of the shared work. */
  use: (result: Result) => Promise<Used>
  /** Called once, when no caller uses the result any more. */
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
        // Waits for the end of the cancelled work. If `run` is called with this key during the wait, it starts new work.
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
    // If the work fails, all waiting callers get the error. The work is removed from `#under`, so the next caller starts new
    // work.
    result.catch(() => {
      if (this.#under.get(key)?.result === result) this.#under.delete(key)
    })
    return { result, listeners, wantedBy: 0, cancel }
  }
}
