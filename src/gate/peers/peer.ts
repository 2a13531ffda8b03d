// Calls the gate of another machine. While calls are open, this gate regularly asks the other one whether it is alive: a machine
// that has lost its power closes no connection.
import type { ClientRequest, IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import type { Duplex } from 'node:stream'
import type { CertificateFiles } from '#src/kit/certificate-files.ts'
import type { Logger } from '#src/kit/log.ts'
import { readWhole } from '#src/kit/read-whole.ts'
import { isProblemCode, Problem } from '#src/problems.ts'
import { alivePath, portProtocol, problemHeader, refusedHeader } from '#src/wire/gate-peers.ts'
import { hostNameOf } from '#src/wire/hosts.ts'
import type { Outgoing } from '../destination.ts'
import type { Entering } from '../door.ts'
import { NothingListens, NotStarted } from '../hindrance.ts'
import { withFewInterim } from '../interim.ts'
import { ofPlace } from './headers.ts'

export type PeerBounds = {
  /** Maximum time in milliseconds to connect to the other gate. */
  connectMs?: number
  /** Milliseconds between two requests by which this gate finds out whether the other gate is alive. */
  beatMs?: number
  /** If the other gate does not answer within this many milliseconds that it is alive, all open calls to it fail. */
  silentMs?: number
  /** Maximum number of open calls to one gate. */
  mostCalls?: number
}

/**
 * Milliseconds to wait until the other gate has connected to a port of a sandbox. The other gate's own timeout (inside.ts) is
 * shorter, so it usually answers in time.
 */
const dialMs = 30_000
/**
 * Maximum size, in bytes, of the head of an answer from the other gate. The limit also applies to toolbox answers that the other
 * gate passes on.
 */
const headBytes = 64 * 1024
const problemBytes = 64 * 1024

class PeerSilent extends Error {
  override name = 'PeerSilent'
}

class PeerRefuses extends Error {
  override name = 'PeerRefuses'
}

const reasons: Record<string, string> = {
  ERR_TLS_CERT_ALTNAME_INVALID: 'its gate shows the certificate of another host',
  CERT_HAS_EXPIRED: "the certificate of its gate has expired (compare the machines' clocks)",
  ENOENT: 'this gate cannot read its own certificate',
  CERT_NOT_YET_VALID: "the certificate of its gate is not valid yet (compare the machines' clocks)",
}

/**
 * Returns the reason why the other gate cannot be used, for the error message. Undefined for other errors: the message then says
 * that the host does not answer.
 */
const reasonOf = (cause: unknown): string | undefined => {
  if (cause instanceof PeerRefuses) return cause.message
  const code = String((cause as { code?: unknown } | null)?.code ?? '')
  const known = reasons[code]
  if (known !== undefined) return known
  if (code.startsWith('HPE_')) return 'what answers at its address is no gate'
  if (/SELF_SIGNED|UNABLE_TO|CERT_|ISSUER/.test(code)) return 'its gate shows no certificate of this server'
  return /^ERR_SSL_|^EPROTO/.test(code) ? 'what answers at its address is no gate of this version' : undefined
}

type Cut = { destroy: (cause?: Error) => unknown }

export class Peer implements Disposable {
  readonly id: string
  readonly #address: { host: string; port: number }
  readonly #certificates: CertificateFiles
  readonly #log: Logger
  readonly #bounds: Required<PeerBounds>
  // TLS sessions are not resumed, because a resumed session would keep the identity of an older certificate.
  readonly #agent = new Agent({
    ...{ keepAlive: true, keepAliveMsecs: 10_000, maxFreeSockets: 64, maxCachedSessions: 0 },
    // This timeout must be shorter than the time for which the other gate keeps an idle connection.
    timeout: 60_000,
  })
  readonly #open = new Set<Cut>()
  #timer: NodeJS.Timeout | undefined
  #complaint: string | undefined

  constructor(
    { id, address }: { id: string; address: string },
    { certificates, log, bounds = {} }: { certificates: CertificateFiles; log: Logger; bounds?: PeerBounds },
  ) {
    const [, host = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec(address) ?? []
    this.id = id
    this.#address = { host, port: Number(port) }
    this.#certificates = certificates
    this.#log = log
    this.#bounds = { connectMs: 5000, beatMs: 5000, silentMs: 10_000, mostCalls: 4096, ...bounds }
  }

  get isIdle(): boolean {
    return this.#open.size === 0
  }

  /**
   * Creates a request to the other gate. The caller must end the request. Throws a Problem if too many calls to that gate are
   * open.
   */
  request(outgoing: Outgoing): ClientRequest {
    if (this.#open.size >= this.#bounds.mostCalls) {
      throw new Problem('unavailable', 'The host of this sandbox has too many open calls; try again.')
    }
    const sent = this.#send(outgoing)
    this.#hold(sent)
    sent.once('response', (answer: IncomingMessage) => this.#heard(answer))
    if (outgoing.isUpgrade) {
      sent.once('upgrade', (answer: IncomingMessage, socket: Duplex) => {
        this.#heard(answer)
        this.#hold(socket)
      })
    }
    return sent
  }

  /** Creates a request. Throws a Problem if the files of this gate's certificate, or the other gate's address, cannot be used. */
  #send(outgoing: Outgoing): ClientRequest {
    try {
      return this.#begin(outgoing)
    } catch (cause) {
      throw this.failure(cause)
    }
  }

  #begin({ method, path, headers }: Outgoing): ClientRequest {
    const name = hostNameOf('gate', this.id)
    const sent = withFewInterim(
      request({
        ...{ ...this.#address, method, path, agent: this.#agent, servername: name, minVersion: 'TLSv1.3' },
        headers: ['Host', name, ...headers],
        ...{ setDefaultHeaders: false, maxHeaderSize: headBytes },
        ...this.#certificates.options,
      }),
    )
    sent.once('socket', (socket) => {
      if (sent.reusedSocket) return
      const late = () => void sent.destroy(new PeerSilent('no connection in time'))
      const timer = setTimeout(late, this.#bounds.connectMs)
      const clear = () => clearTimeout(timer)
      socket.once('secureConnect', clear)
      sent.once('close', clear)
    })
    return sent
  }

  /** Opens a connection to a port inside a sandbox, through the other gate. Rejects with a Problem if that fails. */
  dial(entering: Entering, port: number): Promise<Duplex> {
    return new Promise((resolve, reject) => {
      const path = `/port/${encodeURIComponent(entering.sandboxId)}/${port}`
      const headers = [...ofPlace(entering), 'Connection', 'Upgrade', 'Upgrade', portProtocol]
      const sent = this.request({ method: 'GET', path, headers, isUpgrade: true })
      const timer = setTimeout(() => sent.destroy(new PeerSilent('no answer in time')), dialMs)
      sent.once('close', () => clearTimeout(timer))
      sent.on('error', (cause) => reject(this.failure(cause)))
      sent.once('upgrade', (_answer, socket, first) => {
        if (first.length > 0) socket.unshift(first)
        resolve(socket)
      })
      sent.once('response', (answer) => {
        problemIn(answer, port)
          .then(reject, (cause) => reject(this.failure(cause)))
          .finally(() => sent.destroy())
      })
      sent.end()
    })
  }

  /**
   * Returns the error that a caller gets if the other gate cannot be used. Logs the reason only once, until the reason changes or
   * the other gate answers again.
   */
  readonly failure = (cause: unknown): Problem => {
    if (cause instanceof Problem) return cause
    const reason = reasonOf(cause)
    const sentence =
      reason === undefined
        ? 'The host of this sandbox does not answer; try again.'
        : `The host of this sandbox cannot be reached: ${reason}.`
    if (this.#complaint !== sentence) this.#log.warn({ err: cause, gateId: this.id, ...this.#address }, sentence)
    this.#complaint = sentence
    return new Problem('unavailable', sentence)
  }

  /** Throws if an answer of the other gate says that it refuses our certificate. */
  check({ headers }: IncomingMessage): void {
    const why = headers[refusedHeader]
    if (why !== undefined) throw new PeerRefuses(`its gate refuses the certificate of this gate (${String(why)})`)
  }

  #heard(answer: IncomingMessage): void {
    if (answer.headers[refusedHeader] !== undefined || this.#complaint === undefined) return
    this.#complaint = undefined
    this.#log.info({ gateId: this.id }, 'the gate of another host answers again')
  }

  #hold(cut: Cut & Pick<Duplex | ClientRequest, 'once'>): void {
    this.#open.add(cut)
    cut.once('close', () => this.#open.delete(cut))
    this.#timer ??= setInterval(() => this.#beat(), this.#bounds.beatMs).unref()
  }

  /** Asks whether the other gate is alive. If no answer comes in time, all open calls fail. */
  #beat(): void {
    if (this.#open.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
      return
    }
    let asked: ClientRequest
    try {
      asked = this.#send({ method: 'GET', path: alivePath, headers: [] })
    } catch {
      return
    }
    const timer = setTimeout(() => {
      const silent = new PeerSilent('the other gate is silent')
      asked.destroy()
      for (const cut of this.#open) cut.destroy(silent)
    }, this.#bounds.silentMs)
    asked.once('close', () => clearTimeout(timer))
    asked.on('error', () => {})
    asked.once('response', (answer) => answer.resume())
    asked.end()
  }

  [Symbol.dispose]() {
    clearInterval(this.#timer)
    for (const cut of this.#open) cut.destroy()
    this.#agent.destroy()
  }
}

/**
 * Reads why the other gate refused to connect to a port of a sandbox. Throws if the other gate refuses our certificate, or if the
 * answer does not come from a gate.
 */
const problemIn = async (answer: IncomingMessage, port: number): Promise<Problem> => {
  const why = answer.headers[refusedHeader]
  if (why !== undefined) throw new PeerRefuses(`its gate refuses the certificate of this gate (${String(why)})`)
  const code = answer.headers[problemHeader]
  if (code === 'nothing_listens') return new NothingListens(port)
  if (code === 'not_started') return new NotStarted()
  if (!isProblemCode(code)) throw new PeerRefuses('what answers at its address is no gate')
  const text = await readWhole(answer, problemBytes, () => new Error('a refusal is too long'))
  const said = JSON.parse(text.toString()) as { message?: unknown } | null
  return new Problem(code, typeof said?.message === 'string' ? said.message : undefined)
}
