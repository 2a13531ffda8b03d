// Runs the verbs of all sandboxes, one at a time for each sandbox. A slow verb can be aborted, so that a later verb need not
// wait for it.
import { oneAtATime } from './one-at-a-time.ts'

export class VerbQueue {
  readonly #inLine = oneAtATime()
  /** Abort controllers of slow verbs that are running or queued: stops with a grace period, archives and restores. */
  readonly #slow = new Map<string, Set<AbortController>>()

  /** Queues `work` for the sandbox. */
  run<T>(sandboxId: string, work: () => Promise<T>): Promise<T> {
    return this.#inLine(sandboxId, work)
  }

  /** Queues `work` for the sandbox. Its signal aborts when `cutShort` is called for the sandbox. */
  async runCuttable(sandboxId: string, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const controller = new AbortController()
    const slow = this.#slow.get(sandboxId) ?? new Set()
    this.#slow.set(sandboxId, slow.add(controller))
    try {
      await this.run(sandboxId, () => work(controller.signal))
    } finally {
      slow.delete(controller)
      if (slow.size === 0) this.#slow.delete(sandboxId)
    }
  }

  cutShort(sandboxId: string): void {
    for (const controller of this.#slow.get(sandboxId) ?? []) controller.abort()
  }

  cutAllShort(): void {
    for (const sandboxId of this.#slow.keys()) this.cutShort(sandboxId)
  }
}
