// Asks a runner how many processes of a sandbox the kernel has killed for lack of memory, and when. A question costs more than a
// short command. So commands of one sandbox that end while a question is pending share the next question.
import type { GateRequest, MemoryKillsHere } from '#src/wire/gate-link.ts'

/** Maximum time, in milliseconds, that a call of `find` waits for the runner's answer. */
const longestMs = 1000

/** Asks the runner how many processes of a sandbox were killed for lack of memory; implemented by `RunnerLink`. */
type Asking = {
  ask: (request: GateRequest, body: undefined, signal: AbortSignal) => Promise<MemoryKillsHere>
}

type PendingReads = { underWay: Promise<MemoryKillsHere>; next?: Promise<MemoryKillsHere> }

export class MemoryKillQuestions {
  readonly #link: Asking
  readonly #longestMs: number
  readonly #bySandbox = new Map<string, PendingReads>()

  constructor(link: Asking, waitMs = longestMs) {
    this.#link = link
    this.#longestMs = waitMs
  }

  /**
   * Returns the runner's answer to a question that is sent after the call of `find`. So the answer includes a kill that has just
   * happened.
   */
  find(sandboxId: string): Promise<MemoryKillsHere> {
    const asked = this.#bySandbox.get(sandboxId)
    if (asked?.next !== undefined) return asked.next
    const signal = AbortSignal.timeout(this.#longestMs)
    const ask = () => this.#ask(sandboxId, signal)
    if (asked === undefined) return ask()
    // The runner has not answered an earlier question yet. Its answer may be older than the end of this caller's command. So the
    // gate asks again afterwards, once for all callers that wait.
    asked.next = asked.underWay.then(ask, ask)
    return asked.next
  }

  #ask(sandboxId: string, signal: AbortSignal): Promise<MemoryKillsHere> {
    const underWay: Promise<MemoryKillsHere> = signal.aborted
      ? Promise.reject(signal.reason)
      : this.#link.ask({ ask: 'memory-kills', sandboxId }, undefined, signal)
    const asked: PendingReads = { underWay }
    this.#bySandbox.set(sandboxId, asked)
    const onOver = () => {
      if (asked.next === undefined) this.#bySandbox.delete(sandboxId)
    }
    underWay.then(onOver, onOver)
    return underWay
  }
}
