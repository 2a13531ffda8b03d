// The gates of other machines. This gate passes a call on to the gate of the sandbox's host, which control's answer names.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { CertificateFiles } from '#src/kit/certificate-files.ts'
import type { Logger } from '#src/kit/log.ts'
import { placeHeaders } from '#src/kit/telemetry/telemetry.ts'
import { Problem } from '#src/problems.ts'
import type { Access } from '#src/wire/access.ts'
import { localGateId } from '#src/wire/hosts.ts'
import { corsHeaders } from '../cors.ts'
import type { Destination } from '../destination.ts'
import type { Entering } from '../door.ts'
import { crossing, framing, upgrading } from '../headers.ts'
import { isForToolbox } from '../toolbox-calls.ts'
import { ofPlace } from './headers.ts'
import { Peer, type PeerBounds } from './peer.ts'

type PeersParts = {
  id: string | undefined
  /** The certificate of this gate. Absent: this gate cannot call other gates. */
  certificates: CertificateFiles | undefined
  log: Logger
  bounds?: PeerBounds
}

/** Maximum number of gates that this gate remembers. If there are more, it forgets gates without an open call. */
const keptPeers = 1024

/** Headers of the caller that are not copied: the connection between the two gates has its own values for these headers. */
const rewritten = new Set(['host', 'expect', 'content-length'])

/** If the host of a sandbox cannot be reached, adds the time of the host's last heartbeat to the error for the caller. */
const sayingSince = (error: Problem, { silentSince }: Pick<Access, 'silentSince'>): Problem =>
  silentSince === undefined || error.code !== 'unavailable'
    ? error
    : new Problem('unavailable', `${error.message} Control has not heard it since ${silentSince}.`)

export class Peers implements Disposable {
  readonly #parts: PeersParts
  readonly #known = new Map<string, Peer>()

  constructor(parts: PeersParts) {
    this.#parts = parts
  }

  /** Whether the sandbox is on the host of another gate, so that its calls must go through that gate. */
  isElsewhere({ gate }: Pick<Access, 'gate'>): boolean {
    return gate !== undefined && gate.id !== (this.#parts.id ?? localGateId)
  }

  /** Opens a connection to a port of a sandbox on another host. Undefined: the sandbox is on this host. */
  dial(entering: Entering, port: number): Promise<Duplex> | undefined {
    if (!this.isElsewhere(entering)) return undefined
    return this.#peerOf(entering)
      .dial(entering, port)
      .catch((error) => {
        throw sayingSince(error, entering)
      })
  }

  /**
   * Returns the gate of the sandbox's host, as the destination of a toolbox call. Throws if that gate cannot be called.
   */
  destinationOf(request: IncomingMessage, access: Access, rest: string): Destination {
    const peer = this.#peerOf(access)
    const place = placeHeaders()
    const passes = (name: string) => isForToolbox(name) && !rewritten.has(name) && !Object.hasOwn(place, name)
    return {
      path: `/toolbox/${encodeURIComponent(access.sandboxId)}${rest || '/'}`,
      send: (outgoing) => peer.request(outgoing),
      inward: (isUpgrade) => [
        ...crossing(request, passes),
        ...ofPlace(access),
        ...Object.entries(place).flat(),
        ...(isUpgrade ? upgrading(request) : framing(request)),
      ],
      outward: (answer) => {
        peer.check(answer)
        return [...crossing(answer, () => true), ...corsHeaders(request)]
      },
      failure: (cause) => sayingSince(peer.failure(cause), access),
    }
  }

  #peerOf({ gate }: Pick<Access, 'gate'>): Peer {
    const { certificates } = this.#parts
    if (gate?.address === undefined) {
      throw new Problem('unavailable', 'The gate on the host of this sandbox listens for no other gates.')
    }
    if (certificates === undefined) {
      throw new Problem('unavailable', 'This gate has no certificate, and the sandbox is on another host.')
    }
    const { id, address } = gate
    const key = `${id} ${address}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const peer = new Peer({ id, address }, { ...this.#parts, certificates })
    this.#known.set(key, peer)
    if (this.#known.size > keptPeers) this.#forgetOne()
    return peer
  }

  #forgetOne() {
    const [key, peer] = [...this.#known].find(([, { isIdle }]) => isIdle) ?? []
    if (key === undefined) return
    this.#known.delete(key)
    peer?.[Symbol.dispose]()
  }

  [Symbol.dispose]() {
    for (const peer of this.#known.values()) peer[Symbol.dispose]()
  }
}
