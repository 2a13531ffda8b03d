// Lets callers share the program's only thread fairly: after expensive work for one caller, other work runs before this
// caller goes on.
import { setImmediate } from 'node:timers/promises'

/** Shortest work, in ms, after which the caller must wait before its next work. Usual work takes a tenth of this time. */
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
 * Makes a caller wait t ms after t ms of work that cannot be interrupted, such as parsing. The callers wait one after the
 * other, so they use at most half of the thread's time. A caller must not call this again before its `goOn` was called.
 */
export const goOnInTurn = (tookMs: number, goOn: () => void): void => {
  waiting.push({ tookMs, goOn })
  if (waiting.length === 1) letOn()
}

const turnMs = 10

/** Interrupts long work, which consists of short steps, every 10 ms, so that other work can run. */
export class EventLoopTurns {
  readonly #signal: AbortSignal
  #over = performance.now() + turnMs

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  /**
   * Call this between the short steps of long work. It pauses every 10 ms. After a pause, it throws the signal's reason if the
   * signal has aborted.
   */
  async next(): Promise<void> {
    if (performance.now() < this.#over) return
    await setImmediate()
    this.#signal.throwIfAborted()
    this.#over = performance.now() + turnMs
  }
}
