// How many connections a server has open, and which of them gives way when there are too many. Nobody has to say who they are
// to open one, so a newcomer is always taken, and the connection that has been idle for longest is closed instead of it.
//
// What counts as a sign of life is the head of a call. Bytes of a head or a body that trickle in do not count.
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { networkOf } from '#src/kit/network-of.ts'
import { Problem } from '#src/problems.ts'

export type ConnectionBounds = {
  /** All connections. */
  most?: number
  /**
   * Connections that serve admitted calls. Such a call may need a second descriptor, for what it is passed on to. Beyond it, the
   * owner who has most of them loses one to a newcomer: a visitor's first, then the one that has been served for longest.
   */
  mostHeld?: number
  /** Connections of one network on which nobody has ever said who they are. */
  mostUnknownOfOne?: number
  /** Calls that are sent on one connection before the first of them is answered. */
  mostCallsOfOne?: number
}

/** For `http.createServer`: how long a head may take to come, and how often Node looks. */
export const headTimes = { headersTimeout: 10_000, connectionsCheckingInterval: 2000 }

/** Connections that wait to be taken. Beyond it the kernel lets a newcomer try again a second later. */
export const backlog = 4096

/** Connections that serve admitted calls of one owner, the longest served first. */
type Share = { known: Set<Connection>; visiting: Set<Connection> }

/** A network's unknown connections, the longest silent first. */
type Unknown = { idle: Set<Connection>; visiting: Set<Connection> }

type Connection = {
  socket: Duplex
  /** Calls that are not over. */
  calls: number
  /** Somebody has said who they are on it. */
  isKnown: boolean
  isAdmitted: boolean
  /** The organization or person that an admitted call counts for; a visitor's counts for the owner of what is visited. */
  owner: string
  unknown: Unknown
  network: string
}

const places = new WeakMap<object, Connections>()

const first = <T>(set: Set<T>): T | undefined => set.values().next().value

const sizeOf = (share: Share | undefined): number => (share ? share.known.size + share.visiting.size : 0)

export class Connections {
  readonly #bounds: Required<ConnectionBounds>
  readonly #all = new Map<Duplex, Connection>()
  readonly #networks = new Map<string, Unknown>()
  // Each from the one that has shown no sign of life for longest.
  readonly #unknown = new Set<Connection>()
  readonly #known = new Set<Connection>()
  /** Calls that are open to everybody. */
  readonly #visiting = new Set<Connection>()
  /** Connections that serve admitted calls, by owner. */
  readonly #shares = new Map<string, Share>()
  #held = 0

  constructor({ most = 8192, mostHeld = 6144, mostUnknownOfOne = 1024, mostCallsOfOne = 32 }: ConnectionBounds = {}) {
    this.#bounds = { most, mostHeld, mostUnknownOfOne, mostCallsOfOne }
  }

  /** To be called before anybody connects. */
  watch(server: Server): void {
    server.on('connection', (socket) => {
      // It was reset before it was taken: it has no address to count it by any more, and nobody hears an answer.
      if (socket.remoteAddress === undefined) socket.destroy()
      else this.#add(socket, socket.remoteAddress)
    })
  }

  /**
   * A call has come; without an answer of its own, as for an upgrade, it is over when its connection is. False: its connection is
   * closed, and nothing is to be done for it.
   */
  begin(socket: Duplex, answer?: ServerResponse): boolean {
    const it = this.#all.get(socket)
    if (it === undefined) return !socket.destroyed
    it.calls += 1
    if (it.calls > this.#bounds.mostCallsOfOne) this.#close(it)
    if (socket.destroyed) return false
    if (!it.isAdmitted) this.#put(it)
    answer?.once('close', () => {
      it.calls -= 1
      if (it.calls === 0 && it.isAdmitted) this.#release(it)
    })
    return true
  }

  /**
   * The connection stays from now on until its calls are over, unless others have fewer than its owner and need the room. Throws
   * when there are too many such connections.
   */
  admit(socket: Duplex, isKnown: boolean, owner = ''): void {
    const it = this.#all.get(socket)
    if (it === undefined || socket.destroyed) return
    if (it.isAdmitted && (it.isKnown || !isKnown)) return
    if (!it.isAdmitted && this.#held >= this.#bounds.mostHeld) {
      const giving = this.#longestOfLargest(owner, isKnown || it.isKnown)
      if (giving === undefined) throw new Problem('unavailable', 'Too many calls are open at once. Try again.')
      this.#close(giving)
    }
    this.#take(it)
    it.isAdmitted = true
    it.isKnown ||= isKnown
    it.owner = owner
    this.#put(it)
  }

  #add(socket: Socket, address: string): void {
    const network = networkOf(address)
    let unknown = this.#networks.get(network)
    if (unknown === undefined) {
      unknown = { idle: new Set(), visiting: new Set() }
      this.#networks.set(network, unknown)
    }
    const it = { socket, calls: 0, isKnown: false, isAdmitted: false, owner: '', unknown, network }
    this.#all.set(socket, it)
    places.set(socket, this)
    this.#put(it)
    socket.once('close', () => this.#forget(it))
    if (unknown.idle.size + unknown.visiting.size > this.#bounds.mostUnknownOfOne) {
      this.#close(this.#givesWay(unknown.idle, it) ?? first(unknown.visiting) ?? it)
    } else if (this.#all.size > this.#bounds.most) this.#close(this.#leastNeeded(it))
  }

  /** A sixteenth is kept for those who are about to say who they are, however many known connections are idle. */
  #leastNeeded(newcomer: Connection): Connection {
    const unknown = this.#givesWay(this.#unknown, newcomer)
    if (unknown !== undefined && this.#unknown.size > this.#bounds.most / 16) return unknown
    return first(this.#known) ?? unknown ?? first(this.#visiting) ?? newcomer
  }

  /**
   * A connection of the owner who has most. Undefined where the newcomer's owner would then have as many, or more: such an owner's
   * known callers take the place of the owner's own visitors only.
   */
  #longestOfLargest(owner: string, isKnown: boolean): Connection | undefined {
    let largest: Share = { known: new Set(), visiting: new Set() }
    for (const share of this.#shares.values()) if (sizeOf(share) > sizeOf(largest)) largest = share
    const own = this.#shares.get(owner)
    if (sizeOf(largest) > sizeOf(own) + 1) return first(largest.visiting) ?? first(largest.known)
    return isKnown && own !== undefined ? first(own.visiting) : undefined
  }

  #givesWay(idle: Set<Connection>, newcomer: Connection): Connection | undefined {
    const longest = first(idle)
    return longest === newcomer ? undefined : longest
  }

  /** At the end of the lists where it belongs. */
  #put(it: Connection): void {
    if (it.isAdmitted) {
      const share = this.#shares.get(it.owner) ?? { known: new Set(), visiting: new Set() }
      this.#shares.set(it.owner, share)
      share[it.isKnown ? 'known' : 'visiting'].add(it)
      this.#held += 1
    }
    for (const list of this.#listsOf(it)) {
      list.delete(it)
      list.add(it)
    }
  }

  #take(it: Connection): void {
    const share = this.#shares.get(it.owner)
    if (it.isAdmitted && share !== undefined) {
      share[it.isKnown ? 'known' : 'visiting'].delete(it)
      if (share.known.size + share.visiting.size === 0) this.#shares.delete(it.owner)
      this.#held -= 1
    }
    for (const list of this.#listsOf(it)) list.delete(it)
  }

  #listsOf({ isAdmitted, isKnown, unknown }: Connection): Set<Connection>[] {
    if (isKnown) return isAdmitted ? [] : [this.#known]
    return isAdmitted ? [this.#visiting, unknown.visiting] : [this.#unknown, unknown.idle]
  }

  #release(it: Connection): void {
    if (this.#all.get(it.socket) !== it) return
    this.#take(it)
    it.isAdmitted = false
    this.#put(it)
  }

  #close(it: Connection): void {
    this.#forget(it)
    it.socket.destroy()
  }

  #forget(it: Connection): void {
    if (!this.#all.delete(it.socket)) return
    this.#take(it)
    // A network with known connections alone keeps no lists; its next newcomer makes them anew.
    const { network, unknown } = it
    if (unknown.idle.size + unknown.visiting.size === 0 && this.#networks.get(network) === unknown) {
      this.#networks.delete(network)
    }
  }
}

/** For those who find out only later, on a socket, who calls. */
export const admitConnection = (socket: Duplex, owner: string): void => places.get(socket)?.admit(socket, true, owner)
