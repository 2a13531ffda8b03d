// Limits the open connections of a server and decides which one is evicted when there are too many. Anyone can open a
// connection without a credential. So a new connection is always accepted, and the one that was idle longest is
// evicted.
//
// Only the complete head of a call counts as activity. Single bytes of a head or a body do not count.
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { networkOf } from '#src/kit/network-of.ts'
import { Problem } from '#src/problems.ts'

export type ConnectionBounds = {
  /** Most open connections of the server. */
  most?: number
  /**
   * Most connections that serve admitted calls. Such a call may need a second file descriptor, for the forwarded
   * call. Above this number, a new connection replaces one of the owner with the most connections. A visitor's
   * connection is replaced first, then the connection that has been served longest.
   */
  mostHeld?: number
  /** Most connections of one network on which no credential was ever accepted. */
  mostUnknownOfOne?: number
  /** Most calls that a client may send on one connection before the first is answered (pipelining). */
  mostCallsOfOne?: number
}

/**
 * Options for `http.createServer`. `headersTimeout`: time limit of a request head. `connectionsCheckingInterval`: how
 * often Node checks it. Both are in milliseconds.
 */
export const headTimes = { headersTimeout: 10_000, connectionsCheckingInterval: 2000 }

/**
 * Most connections that wait for accept(2). Above this number, the kernel drops a new connection, and the client tries
 * again a second later.
 */
export const backlog = 4096

/** Connections that serve admitted calls of one owner; the one served longest is first. */
type Share = { known: Set<Connection>; visiting: Set<Connection> }

/** Connections of one network without a credential; the one silent longest is first. */
type Unknown = { idle: Set<Connection>; visiting: Set<Connection> }

type Connection = {
  socket: Duplex
  /** Number of calls on this connection that have not ended yet. */
  calls: number
  /** True if at least one call on this connection had an accepted credential. */
  isKnown: boolean
  isAdmitted: boolean
  /**
   * The organization or person that an admitted call counts for. A visit to a preview counts for the owner of the
   * preview.
   */
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
  // Connections without a credential. In each of these sets, the connection that was inactive longest is first.
  readonly #unknown = new Set<Connection>()
  readonly #known = new Set<Connection>()
  /** Connections that serve admitted calls without a credential, such as visits to a public preview. */
  readonly #visiting = new Set<Connection>()
  /** Connections that serve admitted calls, by owner. */
  readonly #shares = new Map<string, Share>()
  #held = 0

  constructor({ most = 8192, mostHeld = 6144, mostUnknownOfOne = 1024, mostCallsOfOne = 32 }: ConnectionBounds = {}) {
    this.#bounds = { most, mostHeld, mostUnknownOfOne, mostCallsOfOne }
  }

  /** Watches the connections of a server. Call this before it listens. */
  watch(server: Server): void {
    server.on('connection', (socket) => {
      // The client has reset the connection before accept(2). Without an address it cannot be counted, and nobody would
      // get an answer.
      if (socket.remoteAddress === undefined) socket.destroy()
      else this.#add(socket, socket.remoteAddress)
    })
  }

  /**
   * Notes that the head of a call has arrived. An upgrade has no `answer`: its call ends with its connection. Returns
   * false if the connection is closed; the call must then not be processed.
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
   * Protects the connection from eviction in favour of strangers until its calls have ended. It can still be evicted
   * for an owner with fewer connections. Throws if all places for admitted connections are taken.
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

  /**
   * Returns the connection to evict. A sixteenth of all connections stays available to strangers, even if known
   * connections are idle.
   */
  #leastNeeded(newcomer: Connection): Connection {
    const unknown = this.#givesWay(this.#unknown, newcomer)
    if (unknown !== undefined && this.#unknown.size > this.#bounds.most / 16) return unknown
    return first(this.#known) ?? unknown ?? first(this.#visiting) ?? newcomer
  }

  /**
   * Returns the connection to evict for a newcomer: one of the owner with the most connections. If the newcomer's
   * owner would then have as many as that owner, nobody else loses a connection. A newcomer with a credential then
   * replaces a visitor of its own owner.
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

  /** Puts the connection at the end of its lists, as the most recently active. */
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
    // A network without connections of strangers needs no lists. The next connection from the network makes new ones.
    const { network, unknown } = it
    if (unknown.idle.size + unknown.visiting.size === 0 && this.#networks.get(network) === unknown) {
      this.#networks.delete(network)
    }
  }
}

/** Admits the connection of a WebSocket whose caller is identified only after the upgrade. */
export const admitConnection = (socket: Duplex, owner: string): void => places.get(socket)?.admit(socket, true, owner)
