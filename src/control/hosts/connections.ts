// The TLS connections of hosts to this control process, each with a certificate of the host.
// Control closes a connection if the certificate has expired, the runner was removed, or the host has new keys.
import type { TLSSocket } from 'node:tls'
import { keepAnswers } from '#src/control/auth/answer-cache.ts'
import type { Parts } from '#src/control/parts.ts'
import { type HostProgram, readHostName } from '#src/wire/hosts.ts'
import { type HostAuthority, keyHashOf } from './authority.ts'
import { endToken, findHost, type Host, hostChannel } from './store.ts'

/**
 * What the certificate of a connection says. `keyHash`: the hash of its public key. `endsAt`: its expiry, in
 * milliseconds since 1970.
 */
export type Identity = { program: HostProgram; runnerId: string; keyHash: string; endsAt: number }

/** A program of a host that has shown a valid certificate. */
export type KnownHost = { program: HostProgram; runnerId: string; regionId: string }

const identities = new WeakMap<TLSSocket, Identity | undefined>()

const readIdentity = (socket: TLSSocket): Identity | undefined => {
  // `authorized` is true only if the authority of this server has signed the certificate, and the certificate was valid when
  // the connection began.
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined
  const [, name] = /^DNS:([^,\s]+)$/.exec(certificate?.subjectAltName ?? '') ?? []
  const named = name === undefined ? undefined : readHostName(name)
  if (certificate === undefined || named === undefined) return undefined
  return { ...named, keyHash: keyHashOf(certificate.publicKey), endsAt: certificate.validToDate.getTime() }
}

const identityOf = (socket: TLSSocket): Identity | undefined => {
  if (!identities.has(socket)) identities.set(socket, readIdentity(socket))
  return identities.get(socket)
}

/** The parts of control that exist only if control has a port for hosts. */
export type Hosts = { authority: HostAuthority; connections: HostConnections }

export class HostConnections {
  readonly #parts: Pick<Parts, 'database' | 'log'>
  readonly #hosts = keepAnswers<Host | undefined>()
  readonly #sockets = new Set<TLSSocket>()

  private constructor(parts: Pick<Parts, 'database' | 'log'>) {
    this.#parts = parts
  }

  static async open(parts: Pick<Parts, 'database' | 'log'>): Promise<HostConnections> {
    const connections = new HostConnections(parts)
    await parts.database.listen(
      hostChannel,
      (runnerId) => connections.checkAgain(runnerId),
      () => connections.checkAgain(),
    )
    return connections
  }

  /** Adds a connection after its TLS handshake. Ignores a connection without a valid certificate. */
  add(socket: TLSSocket): void {
    if (identityOf(socket) === undefined) return
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  /**
   * Finds the program at the other end of a connection. Undefined if the program has shown no valid certificate. When a host first
   * calls with its certificate, the host's token for joining becomes invalid.
   */
  async find(socket: TLSSocket): Promise<KnownHost | undefined> {
    const identity = identityOf(socket)
    const host = identity && (await this.#findHost(identity))
    if (host === undefined) return undefined
    if (host.tokenHash !== null) {
      await endToken(this.#parts.database.keyed.sql, host.runnerId)
      this.#hosts.forget()
    }
    return { program: identity!.program, runnerId: host.runnerId, regionId: host.regionId }
  }

  /**
   * Closes connections whose certificates have become invalid. If `runnerId` is undefined, checks the connections of
   * all runners.
   */
  checkAgain(runnerId?: string): void {
    this.#hosts.forget()
    for (const socket of this.#sockets) {
      const identity = identityOf(socket)
      if (identity === undefined || (runnerId !== undefined && identity.runnerId !== runnerId)) continue
      this.#findHost(identity)
        .then((host) => {
          if (host === undefined) socket.destroy()
        })
        .catch((error) => this.#parts.log.warn({ err: error, runnerId }, 'a host could not be checked again'))
    }
  }

  /** Closes connections whose certificates have expired. */
  closeEnded(): void {
    for (const socket of this.#sockets) if (identityOf(socket)!.endsAt < Date.now()) socket.destroy()
  }

  async #findHost({ program, runnerId, keyHash, endsAt }: Identity): Promise<Host | undefined> {
    if (endsAt < Date.now()) return undefined
    const host = await this.#hosts.get(runnerId, () => findHost(this.#parts.database.keyed.sql, runnerId))
    return host?.keys[program] === keyHash ? host : undefined
  }
}
