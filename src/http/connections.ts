// Limits the open connections of a server. Anyone can open a connection without a credential, so refusing new
// connections would lock everybody out. A new connection is therefore always accepted. If there are too many, the
// connection that was idle longest is closed (evicted).
//
// A connection counts as active only when the complete head of a call has arrived on it. The bytes of an incomplete
// head do not count, because sending single bytes costs an attacker nothing.
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
   * Maximum number of connections with a call that the server has admitted. Each may need a second file descriptor,
   * because the gate forwards the call. Above this number, a new call is refused, or closes a connection of the owner
   * with the most connections (see `#longestOfLargest`). If a call of this owner had no credential (a visit to a public
   * preview), its connection is closed. Otherwise the connection whose call has lasted longest is closed.
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

/**
 * Options for `http.createServer`. `headersTimeout`: how long the head of a request may take to arrive.
 * `connectionsCheckingInterval`: how often Node checks that. Both in milliseconds.
 */
export const headTimes = { headersTimeout: 10_000, connectionsCheckingInterval: 2000 }

/**
 * Maximum number of connections that the kernel keeps until the server accepts them. If there are more, the kernel
 * drops a new one, and its client tries again a second later.
 */
export const backlog = 4096

/**
 * The connections on which calls of one owner were admitted, in the order of the admissions. `known`: a credential
 * was accepted on the connection. `visiting`: no credential was accepted on it, as for a visit to a public preview.
 */
type Share = { known: Set<Connection>; visiting: Set<Connection> }

/**
 * Connections from one network on which no credential was accepted. `visiting`: those with an admitted call, such as a
 * visit to a public preview. In each set, the connection that was inactive longest comes first.
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

/**
 * Returns the addresses and ports of both ends of a connection. They are equal for a TCP socket and the TLS socket on
 * it.
 */
const endsOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket) =>
  [remoteAddress, remotePort, localAddress, localPort].join(' ')

const places = new WeakMap<object, Connections>()

const first = <T>(set: Set<T>): T | undefined => set.values().next().value

const sizeOf = (share: Share | undefined): number => (share ? share.known.size + share.visiting.size : 0)

export class Connections {
  readonly #bounds: Required<ConnectionBounds>
  readonly #all = new Map<Duplex, Connection>()
  readonly #networks = new Map<string, Unknown>()
  // Connections that have no admitted call at the moment. `#known`: those on which a credential was accepted earlier.
  // `#unknown`: all others. In each set, the connection that was inactive longest comes first.
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
      // If the socket has no remote address, the client has reset the connection before the server accepted it. The
      // connection cannot be counted for a network, and nobody would get the answers to its calls.
      if (socket.remoteAddress === undefined) socket.destroy()
      else this.#add(socket, socket.remoteAddress, isTls ? endsOf(socket) : undefined)
    })
    if (isTls) server.on('secureConnection', (socket) => this.#secure(socket))
  }

  /**
   * Registers that the head of a call has arrived on the connection. `answer` is absent for an upgrade, which ends only
   * with its connection. Returns false if the connection is closed; the server must then not process the call.
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
   * Registers that the server has admitted a call on the connection. Until the call ends, the connection counts towards
   * `mostHeld` and for `owner`, and if its credential was accepted, it is not closed in favour of a new connection. If
   * `mostHeld` is reached, closes the connection that `#longestOfLargest` returns, or throws if it returns none.
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

  /**
   * When the TLS handshake of a connection has ended, stores its TLS socket in place of its TCP socket, because calls
   * arrive on the TLS socket.
   */
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
   * Returns the connection to close so that a new connection can be accepted. A sixteenth of all connections is
   * reserved for clients without a credential. If these clients have more than that, their idle connections are closed
   * first. Otherwise idle connections with a credential are closed first.
   */
  #leastNeeded(newcomer: Connection): Connection {
    const unknown = this.#givesWay(this.#unknown, newcomer)
    if (unknown !== undefined && this.#unknown.size > this.#bounds.most / 16) return unknown
    return first(this.#known) ?? unknown ?? first(this.#visiting) ?? newcomer
  }

  /**
   * Returns the connection to close so that a new call can be admitted. If some owner has at least two connections more
   * than the owner of the new call, returns a connection of the owner with the most connections. Otherwise, if the new
   * call has a credential, returns a connection of the new call's owner that had none. Undefined: there is no such
   * connection.
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

  /**
   * Adds the connection to the sets that `#listsOf` returns for it. If it has an admitted call, adds it also to the
   * share of its owner. In each set it becomes the last one, because it is the most recently active one.
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

/**
 * Registers that the server has accepted the credential of a WebSocket's caller after the upgrade. From then on, the
 * connection counts as one with an admitted call.
 */
export const admitConnection = (socket: Duplex, owner: string): void => places.get(socket)?.admit(socket, true, owner)
