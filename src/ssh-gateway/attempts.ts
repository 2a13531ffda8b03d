// Counts wrong SSH tokens per network (an IPv4 address or an IPv6 /64). The first wrong token begins a minute. After too many wrong
// tokens, the network is refused until the minute ends.
import type { Clock } from '#src/kit/clock.ts'

const mostWrong = 20
const windowMs = 60_000
/** Maximum number of networks that are counted. Above this number, the network whose last wrong token is oldest is forgotten. */
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
