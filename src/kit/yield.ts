// Shares the only thread fairly: expensive work for one caller lets other work run in between.
import { setImmediate } from 'node:timers/promises'

/** Milliseconds. Work that takes at least this long has to wait afterwards. Ordinary work takes a tenth of this. */
export const longMs = 2

const waiting: { tookMs: number; goOn: () => void }[] = []

const letOn = () => {
  const [first] = waiting
  if (first === undefined) return
  setTimeout(() => {
    waiting.shift()
    letOn()
    first.goOn()
  }, first.tookMs)
}

/**
 * Yields after work that cannot be interrupted, such as parsing, whose cost is known only afterwards. A caller whose
 * work took t ms waits t ms before `goOn` is called, and all such callers wait one after the other. So together they
 * use at most half of the thread's time. A caller must not queue again before its `goOn` was called.
 */
export const goOnInTurn = (tookMs: number, goOn: () => void): void => {
  waiting.push({ tookMs, goOn })
  if (waiting.length === 1) letOn()
}

const turnMs = 10

/** Yields in work that has steps: every 10 ms, long work lets other work run. */
export class EventLoopTurns {
  readonly #signal: AbortSignal
  #over = performance.now() + turnMs

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  /** Lets other work run if it is time. Call this between short steps. Throws the signal's reason. */
  async next(): Promise<void> {
    if (performance.now() < this.#over) return
    await setImmediate()
    this.#signal.throwIfAborted()
    this.#over = performance.now() + turnMs
  }
}
