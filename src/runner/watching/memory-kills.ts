// When processes of a sandbox were killed for want of memory. The kernel counts them and says no more, so the count is looked at
// often: every two seconds, and whenever a command begins or ends. Between two looks with different counts somebody was killed.
// Known for as long as the sandbox and this runner run.

/** Milliseconds since 1970. */
type Span = { after: number; until: number }

type Entry = { kills: number; lookedAt: number; spans: Span[] }

/** Most spans that are remembered of each sandbox; the oldest are forgotten. */
const mostSpans = 64

export class MemoryKills {
  readonly #entries = new Map<string, Entry>()
  readonly #now: () => number

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** `kills`: what the kernel has counted until now. */
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

  /** In each of these times somebody was killed, by what the looks around it have found. */
  spans(sandboxId: string): readonly Span[] {
    return this.#entries.get(sandboxId)?.spans ?? []
  }

  remove(sandboxId: string): void {
    this.#entries.delete(sandboxId)
  }
}
