// A kind of mishap inside sandboxes that live on, such as processes killed for want of memory. Mishaps are counted and told
// rarely: the first at once, later ones together after a while. So a sandbox that makes mishaps in a loop fills nobody's
// timeline. What could not be told is told later.
const quietMs = 10 * 60_000
const againMs = 2_000

type Entry = { count: number; timer: NodeJS.Timeout }

export class Mishaps {
  readonly #entries = new Map<string, Entry>()
  readonly #tell: (sandboxId: string, count: number) => boolean

  /** `tell` says whether it could be told. */
  constructor(tell: (sandboxId: string, count: number) => boolean) {
    this.#tell = tell
  }

  /** Counts more mishaps of a sandbox. */
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
