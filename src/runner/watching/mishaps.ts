// Reports one kind of mishap, such as processes killed for want of memory. The first mishap of a sandbox is reported immediately.
// Further mishaps within ten minutes get one report together, so that they do not fill the timeline. A failed report is repeated.
const quietMs = 10 * 60_000
const againMs = 2_000

type Entry = { count: number; timer: NodeJS.Timeout }

export class Mishaps {
  readonly #entries = new Map<string, Entry>()
  readonly #tell: (sandboxId: string, count: number) => boolean

  /** `tell` sends a report with the number of mishaps, and returns whether the report was accepted. */
  constructor(tell: (sandboxId: string, count: number) => boolean) {
    this.#tell = tell
  }

  /** Adds to the number of mishaps of a sandbox. */
  add(sandboxId: string, count: number) {
    const entry = this.#entries.get(sandboxId)
    if (entry) entry.count += count
    else this.#say(sandboxId, count)
  }

  remove(sandboxId: string) {
    clearTimeout(this.#entries.get(sandboxId)?.timer)
    this.#entries.delete(sandboxId)
  }

  close() {
    for (const sandboxId of [...this.#entries.keys()]) this.remove(sandboxId)
  }

  #say(sandboxId: string, count: number) {
    const isTold = this.#tell(sandboxId, count)
    const timer = setTimeout(
      () => {
        const since = this.#entries.get(sandboxId)?.count ?? 0
        this.#entries.delete(sandboxId)
        if (since > 0) this.#say(sandboxId, since)
      },
      isTold ? quietMs : againMs,
    ).unref()
    this.#entries.set(sandboxId, { count: isTold ? 0 : count, timer })
  }
}
