// Limits the audit rows of refused calls, per user and minute. Otherwise a user could fill the audit log.
import type { Clock } from '#src/kit/clock.ts'
import type { Logger } from '#src/kit/log.ts'

export const refusalsPerMinute = 100

export class RefusalBudget {
  readonly #clock: Clock
  readonly #log: Logger
  /** Number of refused calls of each user in the current minute. Key: the id of the user. */
  readonly #counts = new Map<string, number>()
  #minute = 0

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock
    this.#log = log
  }

  /** Counts a refused call of this user. Returns whether the call gets an audit row. */
  takes(userId: string): boolean {
    const minute = Math.floor(this.#clock.now().getTime() / 60_000)
    if (minute !== this.#minute) this.#counts.clear()
    this.#minute = minute
    const count = (this.#counts.get(userId) ?? 0) + 1
    this.#counts.set(userId, count)
    if (count === refusalsPerMinute + 1) this.#log.info({ userId }, 'is refused too often for the audit log')
    return count <= refusalsPerMinute
  }
}
