// What went wrong inside sandboxes that live on, counted, and told not too often: the first time at once, then what has come
// together after a while. A sandbox that makes mishaps in a loop fills nobody's timeline. What could not be told is told later.
const quietMs = 10 * 60_000
const againMs = 2_000

type Entry = { kills: number; timer: NodeJS.Timeout }

export class Mishaps {
  readonly #entries = new Map<string, Entry>()
  readonly #tell: (sandboxId: string, kills: number) => boolean

  /** `tell` says whether it could be told. */
  constructor(tell: (sandboxId: string, kills: number) => boolean) {
    this.#tell = tell
  }

  /** So many more processes of a sandbox were killed. */
  add(sandboxId: string, kills: number) {
    const entry = this.#entries.get(sandboxId)
    if (entry) entry.kills += kills
    else this.#say(sandboxId, kills)
  }

  remove(sandboxId: string) {
    clearTimeout(this.#entries.get(sandboxId)?.timer)
    this.#entries.delete(sandboxId)
  }

  close() {
    for (const sandboxId of [...this.#entries.keys()]) this.remove(sandboxId)
  }

  #say(sandboxId: string, kills: number) {
    const isTold = this.#tell(sandboxId, kills)
    const timer = setTimeout(
      () => {
        const since = this.#entries.get(sandboxId)?.kills ?? 0
        this.#entries.delete(sandboxId)
        if (since > 0) this.#say(sandboxId, since)
      },
      isTold ? quietMs : againMs,
    ).unref()
    this.#entries.set(sandboxId, { kills: isTold ? 0 : kills, timer })
  }
}
