// Asks a runner whether the kernel has killed in a sandbox for want of memory. Commands that end while such a question is under
// way share the next one: with many commands at a time, asking for each would cost more than some of them.
import type { GateRequest, MemoryKillsHere } from '#src/wire/gate-link.ts'

/** No answer about a command waits longer for this: a runner may be there and not answer. */
const longestMs = 1000

/** Asks the runner; such as `RunnerLink`. */
type Asking = {
  ask: (request: GateRequest, body: undefined, signal: AbortSignal) => Promise<MemoryKillsHere>
}

type Asked = { underWay: Promise<MemoryKillsHere>; next?: Promise<MemoryKillsHere> }

export class MemoryKills {
  readonly #link: Asking
  readonly #longestMs: number
  readonly #bySandbox = new Map<string, Asked>()

  constructor(link: Asking, waitMs = longestMs) {
    this.#link = link
    this.#longestMs = waitMs
  }

  /** What the runner knows at a time that is not before this call. */
  find(sandboxId: string): Promise<MemoryKillsHere> {
    const asked = this.#bySandbox.get(sandboxId)
    if (asked?.next !== undefined) return asked.next
    const signal = AbortSignal.timeout(this.#longestMs)
    const ask = () => this.#ask(sandboxId, signal)
    if (asked === undefined) return ask()
    // The answer that is on its way may be older than the command's end.
    asked.next = asked.underWay.then(ask, ask)
    return asked.next
  }

  #ask(sandboxId: string, signal: AbortSignal): Promise<MemoryKillsHere> {
    const underWay: Promise<MemoryKillsHere> = signal.aborted
      ? Promise.reject(signal.reason)
      : this.#link.ask({ ask: 'memory-kills', sandboxId }, undefined, signal)
    const asked: Asked = { underWay }
    this.#bySandbox.set(sandboxId, asked)
    const onOver = () => {
      if (asked.next === undefined) this.#bySandbox.delete(sandboxId)
    }
    underWay.then(onOver, onOver)
    return underWay
  }
}
