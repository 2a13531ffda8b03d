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
   * Connections that serve admitted calls. Such a call may need a second descriptor, for what it is passed on to. Beyond it, who
   * has most of them gives way to others, with the one that has been served for longest.
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

/** A network's unknown connections, the longest silent first. */
type Unknown = { idle: Set<Connection>; visiting: Set<Connection> }

type Connection = {
  socket: Duplex
  /** Calls that are not over. */
  calls: number
  /** Somebody has said who they are on it. */
  isKnown: boolean
  isAdmitted: boolean
  /** Whom it serves, while it is admitted and known. */
  owner: string
  unknown: Unknown
  network: string
}

const places = new WeakMap<object, Connections>()

const first = <T>(set: Set<T>): T | undefined => set.values().next().value

export class Connections {
  readonly #bounds: Required<ConnectionBounds>
  readonly #all = new Map<Duplex, Connection>()
  readonly #networks = new Map<string, Unknown>()
  // Each from the one that has shown no sign of life for longest.
  readonly #unknown = new Set<Connection>()
  readonly #known = new Set<Connection>()
  /** Calls that are open to everybody. */
  readonly #visiting = new Set<Connection>()
  /** Those that serve known callers, by whom they are for, each from the one that has been served for longest. */
  readonly #heldBy = new Map<string, Set<Connection>>()
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
   * Its connection stays from now on until its calls are over, unless others have fewer than its owner and need the room. Throws
   * when there are too many of such.
   */
  admit(socket: Duplex, isKnown: boolean, owner = ''): void {
    const it = this.#all.get(socket)
    if (it === undefined || socket.destroyed) return
    if (it.isAdmitted && (it.isKnown || !isKnown)) return
    if (!it.isAdmitted && this.#held + this.#visiting.size >= this.#bounds.mostHeld) {
      const giving = isKnown || it.isKnown ? (first(this.#visiting) ?? this.#longestOfLargest(owner)) : undefined
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

  /** Nothing where this owner would then have as many as the one that gives way, or more. */
  #longestOfLargest(owner: string): Connection | undefined {
    let largest: Set<Connection> | undefined
    for (const held of this.#heldBy.values()) if (held.size > (largest?.size ?? 0)) largest = held
    const own = this.#heldBy.get(owner)?.size ?? 0
    return largest === undefined || largest.size <= own + 1 ? undefined : first(largest)
  }

  #givesWay(idle: Set<Connection>, newcomer: Connection): Connection | undefined {
    const longest = first(idle)
    return longest === newcomer ? undefined : longest
  }

  /** At the end of the lists where it belongs. */
  #put(it: Connection): void {
    if (it.isAdmitted && it.isKnown) {
      this.#held += 1
      const held = this.#heldBy.get(it.owner) ?? new Set()
      this.#heldBy.set(it.owner, held.add(it))
      return
    }
    const [all, ofNetwork] = this.#listsOf(it)
    all.delete(it)
    all.add(it)
    ofNetwork?.delete(it)
    ofNetwork?.add(it)
  }

  #take(it: Connection): void {
    if (it.isAdmitted && it.isKnown) {
      this.#held -= 1
      const held = this.#heldBy.get(it.owner)
      held?.delete(it)
      if (held?.size === 0) this.#heldBy.delete(it.owner)
      return
    }
    const [all, ofNetwork] = this.#listsOf(it)
    all.delete(it)
    ofNetwork?.delete(it)
  }

  #listsOf({ isAdmitted, isKnown, unknown }: Connection): [Set<Connection>, Set<Connection>?] {
    if (isAdmitted) return [this.#visiting, unknown.visiting]
    return isKnown ? [this.#known] : [this.#unknown, unknown.idle]
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
