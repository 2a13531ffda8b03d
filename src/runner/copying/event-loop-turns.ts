// An uploader's files and patterns decide how long the matching takes. The rest of the
// runner goes on meanwhile.
import { setImmediate } from 'node:timers/promises'

const turnMs = 10

export class EventLoopTurns {
  readonly #signal: AbortSignal
  #over = performance.now() + turnMs

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  /** Asked between steps that take a moment each; throws the reason of an abort. */
  async next(): Promise<void> {
    if (performance.now() < this.#over) return
    await setImmediate()
    this.#signal.throwIfAborted()
    this.#over = performance.now() + turnMs
  }
}
