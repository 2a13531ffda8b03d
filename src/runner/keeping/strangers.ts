// Sandboxes on this host that control does not list. A control whose database came back from a backup lists less than it
// should, and its operator needs time to notice: nothing is removed before it has been missing from every list for long.
import type { Logger } from '#src/kit/log.ts'

export class Strangers {
  readonly #graceMs: number
  readonly #log: Logger
  readonly #since = new Map<string, number>()

  constructor({ graceMs, log }: { graceMs: number; log: Logger }) {
    this.#graceMs = graceMs
    this.#log = log
  }

  /** Takes all that are missing from the list of now; answers those whose grace is over. */
  due(missing: ReadonlySet<string>, now: number): string[] {
    for (const id of this.#since.keys()) if (!missing.has(id)) this.#since.delete(id)
    const due: string[] = []
    for (const id of missing) {
      const since = this.#since.get(id)
      if (since === undefined) {
        this.#since.set(id, now)
        this.#log.warn({ sandboxId: id, graceMs: this.#graceMs }, 'control does not list this sandbox')
      } else if (now - since >= this.#graceMs) due.push(id)
    }
    return due
  }
}
