// Limits the number of open connections. If too many clients have not signed in, the oldest of their connections is closed, so that
// they cannot keep other clients out.
import { Budget } from '#src/kit/budget.ts'
import { networkOf } from '#src/kit/network-of.ts'

export type PlaceBounds = {
  /** Maximum number of open connections of the SSH gateway. */
  most?: number
  /** Maximum number of open connections of one network (an IPv4 address or an IPv6 /64). */
  mostOfOne?: number
  /** Maximum number of connections whose client has not signed in: in total, and per network. */
  mostStrangers?: number
  mostStrangersOfOne?: number
}

type Closing = { destroy: () => void; once: (event: 'close', listener: () => void) => unknown }

export type Place = {
  network: string
  /** Must be called when the client has signed in. This connection then does not count for the limits `mostStrangers…`. */
  settle: () => void
}

export class Places {
  readonly #bounds: Required<PlaceBounds>
  readonly #all: Budget
  readonly #strangersOf: Budget
  /** Connections whose client has not signed in, the oldest first. */
  readonly #strangers = new Set<Closing>()

  constructor({ most = 1024, mostOfOne = 128, mostStrangers = 256, mostStrangersOfOne = 16 }: PlaceBounds = {}) {
    this.#bounds = { most, mostOfOne, mostStrangers, mostStrangersOfOne }
    this.#all = new Budget({ each: mostOfOne, all: most })
    this.#strangersOf = new Budget({ each: mostStrangersOfOne })
  }

  /** Counts a new connection. Returns undefined if there are too many connections; the caller must then close the new one. */
  take(connection: Closing, address: string): Place | undefined {
    const network = networkOf(address)
    if (!this.#strangersOf.take(network)) return undefined
    if (this.#strangers.size >= this.#bounds.mostStrangers) this.#evict()
    if (!this.#all.take(network)) {
      this.#strangersOf.give(network)
      return undefined
    }
    this.#strangers.add(connection)
    const settle = () => {
      if (this.#strangers.delete(connection)) this.#strangersOf.give(network)
    }
    connection.once('close', () => {
      settle()
      this.#all.give(network)
    })
    return { network, settle }
  }

  #evict(): void {
    const [first] = this.#strangers
    first?.destroy()
  }
}
