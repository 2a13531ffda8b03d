// The verbs of all sandboxes: for one sandbox one at a time. Slow verbs can be cut short, so that a later verb need not wait.
import { oneAtATime } from './one-at-a-time.ts'

export class VerbQueue {
  readonly #inLine = oneAtATime()
  /** Abort controllers of slow verbs, under way or queued: polite stops, and moving disks to and from archives. */
  readonly #slow = new Map<string, Set<AbortController>>()

  /** Queues `work` for the sandbox. */
  run<T>(sandboxId: string, work: () => Promise<T>): Promise<T> {
    return this.#inLine(sandboxId, work)
  }

  /** Queues `work` for the sandbox. The signal aborts when `cutShort` is called for the sandbox. */
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
