// Records when processes of a sandbox were killed for want of memory. The kernel only counts kills, so the counter is read every
// two seconds, and whenever a command begins or ends. The recorded times are lost when the sandbox or this runner ends.

/** Time between two readings of the kernel's counter, in milliseconds since 1970. A process was killed during this time. */
type Span = { after: number; until: number }

type Entry = { kills: number; lookedAt: number; spans: Span[] }

/** Maximum number of stored time spans per sandbox. In each span, a process was killed. The oldest spans are dropped. */
const mostSpans = 64

export class MemoryKills {
  readonly #entries = new Map<string, Entry>()
  readonly #now: () => number

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** Records a reading of the kernel's counter, which is `kills` at this moment. */
  look(sandboxId: string, kills: number): void {
    const now = this.#now()
    const entry = this.#entries.get(sandboxId)
    if (entry === undefined) {
      this.#entries.set(sandboxId, { kills, lookedAt: now, spans: [] })
      return
    }
    if (kills > entry.kills) entry.spans = [...entry.spans.slice(1 - mostSpans), { after: entry.lookedAt, until: now }]
    entry.kills = kills
    entry.lookedAt = now
  }

  /** Returns spans of time. In each span, at least one process was killed for want of memory. */
  spans(sandboxId: string): readonly Span[] {
    return this.#entries.get(sandboxId)?.spans ?? []
  }

  remove(sandboxId: string): void {
    this.#entries.delete(sandboxId)
  }
}
