// Bounds the open connections. Anybody may connect, so a stranger never keeps out somebody else: of those who have not signed in,
// the one that came first gives way.
import { Budget } from '#src/kit/budget.ts'
import { networkOf } from '#src/kit/network-of.ts'

export type PlaceBounds = {
  /** Most connections. */
  most?: number
  /** Most connections of one network. */
  mostOfOne?: number
  /** Most connections that have not signed in: in all, and of one network. */
  mostStrangers?: number
  mostStrangersOfOne?: number
}

type Closing = { destroy: () => void; once: (event: 'close', listener: () => void) => unknown }

export type Place = {
  network: string
  /** Call this when the connection has signed in. */
  settle: () => void
}

export class Places {
  readonly #bounds: Required<PlaceBounds>
  readonly #all: Budget
  readonly #strangersOf: Budget
  /** Connections that have not signed in; the one that came first is first. */
  readonly #strangers = new Set<Closing>()

  constructor({ most = 1024, mostOfOne = 128, mostStrangers = 256, mostStrangersOfOne = 16 }: PlaceBounds = {}) {
    this.#bounds = { most, mostOfOne, mostStrangers, mostStrangersOfOne }
    this.#all = new Budget({ each: mostOfOne, all: most })
    this.#strangersOf = new Budget({ each: mostStrangersOfOne })
  }

  /** Takes a place for a connection. Returns undefined if there is none: the connection must then be closed. */
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
