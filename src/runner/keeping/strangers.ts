// Finds sandboxes on this host that control does not list ("strangers"). A database that was restored from a backup may lack
// sandboxes, and the operator needs time to notice. A stranger is therefore removed only after a long time.
import type { Logger } from '#src/kit/log.ts'

export class Strangers {
  readonly #graceMs: number
  readonly #log: Logger
  readonly #since = new Map<string, number>()

  constructor({ graceMs, log }: { graceMs: number; log: Logger }) {
    this.#graceMs = graceMs
    this.#log = log
  }

  /**
   * Returns the sandboxes that control has not listed for `graceMs`. `missing`: this host's sandboxes that control's newest list
   * lacks.
   */
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
