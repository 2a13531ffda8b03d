// Counts the wrong SSH tokens that come from each network (an IPv4 address or an IPv6 /64). A network with too many
// wrong tokens may not connect for the rest of the minute.
import type { Clock } from '#src/kit/clock.ts'

const mostWrong = 20
const windowMs = 60_000
/**
 * Maximum number of networks whose wrong tokens are counted. If there are more, the count of the network whose last
 * wrong token came longest ago is deleted.
 */
const mostNetworks = 10_000

export class Attempts {
  readonly #clock: Clock
  readonly #wrong = new Map<string, { count: number; until: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  isBarred(network: string): boolean {
    const wrong = this.#wrong.get(network)
    return wrong !== undefined && wrong.until > this.#clock.now().getTime() && wrong.count >= mostWrong
  }

  noteWrong(network: string): void {
    const now = this.#clock.now().getTime()
    const before = this.#wrong.get(network)
    const isOver = before === undefined || before.until <= now
    this.#wrong.delete(network)
    this.#wrong.set(network, isOver ? { count: 1, until: now + windowMs } : { ...before, count: before.count + 1 })
    if (this.#wrong.size > mostNetworks) this.#wrong.delete(this.#wrong.keys().next().value!)
  }
}
