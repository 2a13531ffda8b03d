// Delivers reports about sandboxes to control: over the link, or over HTTP if the link is down or lost. Repeats a report if
// control's list shows that the report is missing.
import type { Logger } from '#src/kit/log.ts'
import { FairQueue } from '#src/kit/queue.ts'
import type { Report } from '#src/wire/runner-link.ts'
import { idOf, isRead, type ListedSandbox, type UnreadableSandbox } from './assignment.ts'
import type { Delivery } from './control-client.ts'

type ReporterParts = {
  /** Sends a report over the link. Returns whether it was sent. A report that was sent may still be lost. */
  send: (report: Report) => boolean
  tell: (report: Report) => Promise<Delivery>
  log: Logger
  now?: () => number
  retryMs?: { first: number; longest: number }
}

type UnconfirmedReport = {
  report: Report
  saidAt: number
  isTelling: boolean
  failures: number
  retry?: NodeJS.Timeout
}

export class Reporter implements Disposable {
  readonly #parts: Required<ReporterParts>
  readonly #waiting = new Map<string, UnconfirmedReport>()
  readonly #lanes = new FairQueue({ atOnce: 8 })
  #isClosed = false

  constructor(parts: ReporterParts) {
    this.#parts = { now: Date.now, retryMs: { first: 500, longest: 30_000 }, ...parts }
  }

  say(report: Report): void {
    const known = this.#waiting.get(report.sandboxId)
    clearTimeout(known?.retry)
    const waiting: UnconfirmedReport = {
      report,
      saidAt: this.#parts.now(),
      isTelling: known?.isTelling ?? false,
      failures: 0,
    }
    this.#waiting.set(report.sandboxId, waiting)
    // If an earlier report is being sent over HTTP, the new one waits, so that the earlier one cannot arrive last.
    if (!waiting.isTelling && !this.#parts.send(report)) this.#tell(waiting)
  }

  /** Must be called when the link is lost. Nobody knows which reports have arrived, so all are sent again over HTTP. */
  linkLost(): void {
    for (const waiting of this.#waiting.values()) this.#tell(waiting)
  }

  /**
   * Compares reports with control's list of sandboxes, which was requested at `askedAt`. Drops the reports that control does
   * not need. Sends all other reports from before `askedAt` again.
   */
  confirm(listed: readonly (ListedSandbox | UnreadableSandbox)[], askedAt: number): void {
    const known = new Map(listed.map((one) => [idOf(one), one]))
    for (const [sandboxId, waiting] of this.#waiting) {
      const { report, saidAt } = waiting
      if (saidAt >= askedAt) continue
      const one = known.get(sandboxId)
      const isHeard =
        one === undefined ||
        (isRead(one) && (one.state === report.state || one.assignment.generation > report.generation))
      if (isHeard) this.#forget(waiting)
      else this.#tell(waiting)
    }
  }

  #tell(waiting: UnconfirmedReport) {
    if (this.#isClosed || waiting.isTelling) return
    clearTimeout(waiting.retry)
    waiting.isTelling = true
    const { report } = waiting
    const { sandboxId } = report
    void this.#lanes.run(async () => {
      const delivery = await this.#parts.tell(report).catch((error: unknown) => {
        if (!this.#isClosed) this.#parts.log.warn({ err: error, sandboxId }, 'a report could not be told')
        return 'failed' as const
      })
      waiting.isTelling = false
      const latest = this.#waiting.get(sandboxId)
      if (latest === undefined) return
      latest.isTelling = false
      if (latest.report !== report) this.#tell(latest)
      else if (delivery === 'failed') this.#later(latest)
      else this.#forget(latest)
    })
  }

  #later(waiting: UnconfirmedReport) {
    if (this.#isClosed) return
    const { first, longest } = this.#parts.retryMs
    const waitMs = Math.min(first * 2 ** waiting.failures, longest)
    waiting.failures += 1
    waiting.retry = setTimeout(() => this.#tell(waiting), waitMs)
  }

  #forget(waiting: UnconfirmedReport) {
    clearTimeout(waiting.retry)
    const { sandboxId } = waiting.report
    if (this.#waiting.get(sandboxId) === waiting) this.#waiting.delete(sandboxId)
  }

  [Symbol.dispose]() {
    this.#isClosed = true
    for (const { retry } of this.#waiting.values()) clearTimeout(retry)
  }
}
