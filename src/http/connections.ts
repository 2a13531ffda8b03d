// Limits the open connections of a server. Anyone can open connections without a credential, so refusing new ones would
// lock everybody out. A new connection is always accepted. If there are too many, the one that was idle longest is closed
// (evicted).
//
// A connection counts as active only when the complete head of a call has arrived on it, because sending single bytes costs
// an attacker nothing.
//
// A call is admitted when its credential has been accepted, or when control allows it without one, as for a public preview.
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Server as TlsServer } from 'node:tls'
import { networkOf } from '#src/kit/network-of.ts'
import { Problem } from '#src/problems.ts'

export type ConnectionBounds = {
  /** Maximum number of open connections of the server. */
  most?: number
  /**
   * Maximum number of connections with an admitted call (see the top of this file). Each may need a second file descriptor,
   * because the gate forwards the call. If there are more, `#longestOfLargest` chooses a connection to close, or the new call is
   * refused.
   */
  mostHeld?: number
  /** Maximum number of connections from one network (an IPv4 address or an IPv6 /64) that have no accepted credential yet. */
  mostUnknownOfOne?: number
  /**
   * Maximum number of calls that a client may send on one connection before the server has answered the first
   * (pipelining).
   */
  mostCallsOfOne?: number
}

/** How long the head of a request may take to arrive, and how often Node checks that, both in milliseconds. */
export const headTimes = { headersTimeout: 10_000, connectionsCheckingInterval: 2000 }

/**
 * Maximum number of connections that the kernel keeps until the server accepts them. A client beyond this number tries again a
 * second later.
 */
export const backlog = 4096

/**
 * The connections with admitted calls of one owner, in the order of the admissions. `known`: connections with an accepted
 * credential. `visiting`: connections without a credential, such as a visit to a public preview.
 */
type Share = { known: Set<Connection>; visiting: Set<Connection> }

/**
 * Connections from one network on which no credential was accepted. `visiting`: those with an admitted call. In each set,
 * the connection that was inactive longest comes first.
 */
type Unknown = { idle: Set<Connection>; visiting: Set<Connection> }

type Connection = {
  socket: Duplex
  /** Number of calls that have begun on this connection and have not ended. */
  calls: number
  /** True if the server has accepted the credential of at least one call on this connection. */
  isKnown: boolean
  isAdmitted: boolean
  /**
   * The organization or person that an admitted call counts for. A visitor's call to a preview counts for the owner of
   * the preview.
   */
  owner: string
  unknown: Unknown
  network: string
  /** Addresses and ports of both ends of the connection. Only for a server with TLS, which needs them until the handshake ends. */
  ends?: string
}

/** Returns addresses and ports of a connection's ends. A TCP socket and the TLS socket on it give the same text. */
const endsOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket) =>
  [remoteAddress, remotePort, localAddress, localPort].join(' ')

const places = new WeakMap<object, Connections>()

const first = <T>(set: Set<T>): T | undefined => set.values().next().value

const sizeOf = (share: Share | undefined): number => (share ? share.known.size + share.visiting.size : 0)

export class Connections {
  readonly #bounds: Required<ConnectionBounds>
  readonly #all = new Map<Duplex, Connection>()
  readonly #networks = new Map<string, Unknown>()
  // Connections on which no admitted call runs. `#known`: an earlier call had an accepted credential. `#unknown`: no call had one.
  // In each set, the connection that was inactive longest comes first.
  readonly #unknown = new Set<Connection>()
  readonly #known = new Set<Connection>()
  /** Connections with admitted calls that had no credential, such as visits to a public preview. */
  readonly #visiting = new Set<Connection>()
  /** Connections with admitted calls, by the owner of the calls. */
  readonly #shares = new Map<string, Share>()
  /** Connections whose TLS handshake has not ended yet, by the addresses and ports of both ends. */
  readonly #handshakes = new Map<string, Connection>()
  #held = 0

  constructor({ most = 8192, mostHeld = 6144, mostUnknownOfOne = 1024, mostCallsOfOne = 32 }: ConnectionBounds = {}) {
    this.#bounds = { most, mostHeld, mostUnknownOfOne, mostCallsOfOne }
  }

  /** Begins to count and limit the connections of a server. Must be called before the server listens. */
  watch(server: Server): void {
    const isTls = server instanceof TlsServer
    server.on('connection', (socket) => {
      // If the socket has no remote address, the client has reset the connection already, and nobody would get the answers.
      if (socket.remoteAddress === undefined) socket.destroy()
      else this.#add(socket, socket.remoteAddress, isTls ? endsOf(socket) : undefined)
    })
    if (isTls) server.on('secureConnection', (socket) => this.#secure(socket))
  }

  /**
   * Registers that the head of a call has arrived. `answer` is absent for an upgrade, which ends only with its connection.
   * Returns false if the connection is closed; the server must then not process the call.
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
   * Registers that the server has admitted a call. Until the call ends, its connection counts towards the limit `mostHeld` and
   * towards the share of its owner. If the limit is reached, closes the connection that the method `#longestOfLargest` chooses.
   * Throws if no connection may be closed.
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

  /** Stores the TLS socket in place of its TCP socket after the handshake, because calls arrive on the TLS socket. */
  #secure(socket: Socket): void {
    const ends = endsOf(socket)
    const it = this.#handshakes.get(ends)
    if (it === undefined) return void socket.destroy()
    this.#handshakes.delete(ends)
    this.#all.delete(it.socket)
    it.socket = socket
    this.#all.set(socket, it)
    places.set(socket, this)
    socket.once('close', () => this.#forget(it))
  }

  #add(socket: Socket, address: string, ends: string | undefined): void {
    const network = networkOf(address)
    let unknown = this.#networks.get(network)
    if (unknown === undefined) {
      unknown = { idle: new Set(), visiting: new Set() }
      this.#networks.set(network, unknown)
    }
    const it: Connection = {
      ...{ socket, calls: 0, isKnown: false, isAdmitted: false, owner: '', unknown, network },
      ...(ends !== undefined && { ends }),
    }
    this.#all.set(socket, it)
    if (ends !== undefined) this.#handshakes.set(ends, it)
    places.set(socket, this)
    this.#put(it)
    socket.once('close', () => this.#forget(it))
    if (unknown.idle.size + unknown.visiting.size > this.#bounds.mostUnknownOfOne) {
      this.#close(this.#givesWay(unknown.idle, it) ?? first(unknown.visiting) ?? it)
    } else if (this.#all.size > this.#bounds.most) this.#close(this.#leastNeeded(it))
  }

  /**
   * Returns the connection to close for a new connection. A sixteenth of all connections is reserved for clients without a
   * credential. If they have more idle connections than that, the longest idle of these is closed. Otherwise the longest idle
   * connection with a credential is closed.
   */
  #leastNeeded(newcomer: Connection): Connection {
    const unknown = this.#givesWay(this.#unknown, newcomer)
    if (unknown !== undefined && this.#unknown.size > this.#bounds.most / 16) return unknown
    return first(this.#known) ?? unknown ?? first(this.#visiting) ?? newcomer
  }

  /** Returns the connection to close, so that the server can admit a call of `owner`. Undefined if no connection may be closed. */
  #longestOfLargest(owner: string, isKnown: boolean): Connection | undefined {
    let largest: Share = { known: new Set(), visiting: new Set() }
    for (const share of this.#shares.values()) if (sizeOf(share) > sizeOf(largest)) largest = share
    const own = this.#shares.get(owner)
    // The owner with the most connections loses one if the new call's owner has at least two connections fewer.
    if (sizeOf(largest) > sizeOf(own) + 1) return first(largest.visiting) ?? first(largest.known)
    // Otherwise, no connection of another owner is closed. A new call with a credential may still close a connection of its own
    // owner that has no credential.
    return isKnown && own !== undefined ? first(own.visiting) : undefined
  }

  #givesWay(idle: Set<Connection>, newcomer: Connection): Connection | undefined {
    const longest = first(idle)
    return longest === newcomer ? undefined : longest
  }

  /**
   * Puts a connection at the end of its sets (`#listsOf`), because it was active just now. If the connection has an admitted call,
   * adds the connection to its owner's share.
   */
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
    // A new connection can cause only connections in these sets to be closed. A connection with an admitted call and an accepted
    // credential is in none of the sets. It can be closed only for a new admitted call (`#longestOfLargest`).
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
    const { network, unknown, ends } = it
    if (ends !== undefined && this.#handshakes.get(ends) === it) this.#handshakes.delete(ends)
    // Remove the network from `#networks` if it has no connection without a credential any more.
    if (unknown.idle.size + unknown.visiting.size === 0 && this.#networks.get(network) === unknown) {
      this.#networks.delete(network)
    }
  }
}

/** Registers that the server has accepted a WebSocket's credential after the upgrade. The connection then counts as admitted. */
export const admitConnection = (socket: Duplex, owner: string): void => places.get(socket)?.admit(socket, true, owner)
