// Serves the gates of other machines, which authenticate with certificates. door.ts checks the ticket of each call.
import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createServer, type TLSSocket } from 'node:tls'
import { backlog } from '#src/http/connections.ts'
import { followCall } from '#src/http/followed-call.ts'
import { endSoon, headOf } from '#src/http/linger.ts'
import { cutOffIdle } from '#src/http/unread-answers.ts'
import type { CertificateFiles } from '#src/kit/certificate-files.ts'
import type { Logger } from '#src/kit/log.ts'
import { type Problem, Problem as Refusal } from '#src/problems.ts'
import { alivePath, portProtocol, problemHeader, refusedHeader } from '#src/wire/gate-peers.ts'
import { readHostName } from '#src/wire/hosts.ts'
import { NothingListens } from '../hindrance.ts'
import type { Inside } from '../inside.ts'
import { decoded } from '../query.ts'
import { asRefusal, refuse, refuseUpgrade } from '../refusal.ts'
import { isToldAfterUpgrade, refuseSocket } from '../refuse-socket.ts'
import { type Answering, passAdmitted, passUpgrade } from '../toolbox-calls.ts'
import { join } from '../upgrade.ts'
import { readPlace } from './headers.ts'

export type ListenerBounds = {
  /** Milliseconds between two checks whether the files of this gate's certificate have changed. */
  renewMs?: number
  /** Maximum number of connections that have not shown the certificate of a gate. */
  mostUnproved?: number
  /** Maximum number of connections of all other gates together. */
  mostProved?: number
}

type ListenerParts = ListenerBounds & {
  listen: { host: string; port: number }
  certificates: CertificateFiles
  inside: Pick<Inside, 'dial'>
  toolbox: Answering
  log: Logger
}

/** Maximum size of the head of a call: the caller's head, and the headers that the other gate adds. */
const headBytes = 64 * 1024
/** The log gets at most this many different messages about refused connections. */
const mostNoted = 256

/** Returns which host's gate has connected, or why the connection is refused. */
const callerOf = (socket: TLSSocket): { hostId: string } | { why: string } => {
  if (!socket.authorized) return { why: String(socket.authorizationError ?? 'no certificate') }
  const names = socket.getPeerX509Certificate()?.subjectAltName ?? ''
  const name = names.startsWith('DNS:') ? names.slice('DNS:'.length) : ''
  const named = readHostName(name)
  return named?.program === 'gate' ? { hostId: named.runnerId } : { why: 'not the name of a gate' }
}

const placeIn = ({ url = '/', headers }: IncomingMessage) => {
  const [, kind, name = '', rest = ''] = /^\/(toolbox|port)\/([^/?]+)(.*)$/s.exec(url) ?? []
  const sandboxId = decoded(name)
  if (kind === undefined || !sandboxId) throw new Refusal('not_found')
  const place = readPlace(headers, sandboxId)
  const port = /^\/(\d{1,5})$/.exec(rest)?.[1]
  return { place, rest, port: kind === 'port' ? Number(port ?? 0) : undefined }
}

export type PeerListener = { port: number; close: () => Promise<void> }

export const listenForPeers = async ({
  listen,
  certificates,
  inside,
  toolbox,
  log,
  renewMs = 10_000,
  mostUnproved = 1024,
  mostProved = 16_384,
}: ListenerParts): Promise<PeerListener> => {
  const http = createHttpServer({ maxHeaderSize: headBytes, requestTimeout: 0, keepAliveTimeout: 90_000 })
  const sockets = new Set<Duplex>()
  const noted = new Set<string>()
  let current = certificates.options
  const server = createServer({
    ...{ ...current, minVersion: 'TLSv1.3', requestCert: true, rejectUnauthorized: false, handshakeTimeout: 10_000 },
    ...{ noDelay: true, keepAlive: true, keepAliveInitialDelay: 10_000 },
  })

  const noteOnce = (what: string, details: object) => {
    if (noted.has(what) || noted.size >= mostNoted) return
    noted.add(what)
    log.warn(details, 'a connection from another gate was refused')
  }

  // Anybody on the network can open connections. If too many have not shown the certificate of a gate, the oldest of these
  // connections is closed, so that gates can still connect.
  const unproved = new Map<string, Duplex>()
  const keyOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
  server.on('connection', (socket: Socket) => {
    const key = keyOf(socket)
    unproved.set(key, socket)
    socket.once('close', () => unproved.get(key) === socket && unproved.delete(key))
    if (unproved.size > mostUnproved) unproved.values().next().value?.destroy()
  })

  // A gate that an attacker controls must not use up all connections. If there are too many, the oldest connection of the host
  // with the most connections is closed.
  const proved = new Map<string, Set<Duplex>>()
  let provedCount = 0
  const admit = (hostId: string, socket: Duplex) => {
    const ofHost = proved.get(hostId) ?? new Set()
    proved.set(hostId, ofHost.add(socket))
    provedCount += 1
    socket.once('close', () => {
      ofHost.delete(socket)
      provedCount -= 1
      if (ofHost.size === 0 && proved.get(hostId) === ofHost) proved.delete(hostId)
    })
    if (provedCount <= mostProved) return
    const [largest] = [...proved.values()].sort((one, other) => other.size - one.size)
    largest?.values().next().value?.destroy()
  }

  server.on('secureConnection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket)).on('error', () => socket.destroy())
    const caller = callerOf(socket)
    if ('hostId' in caller) {
      unproved.delete(keyOf(socket))
      admit(caller.hostId, socket)
      return void http.emit('connection', socket)
    }
    const { why } = caller
    noteOnce(`${socket.remoteAddress} ${why}`, { address: socket.remoteAddress, why })
    socket.write(headOf(403, 'Forbidden', [refusedHeader, why, 'Content-Length', '0', 'Connection', 'close']))
    endSoon(socket)
  })
  server.on('tlsClientError', (error, socket) => {
    noteOnce(`${socket.remoteAddress} ${error.message}`, { address: socket.remoteAddress, why: error.message })
    socket.destroy()
  })

  const onCall = (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === alivePath) return void response.writeHead(204).end()
    try {
      const { place, rest, port } = placeIn(request)
      if (port !== undefined) throw new Refusal('bad_request', 'A connection to a port needs an upgrade.')
      cutOffIdle(response)
      passAdmitted(toolbox, request, response, { entering: place, rest })
    } catch (error) {
      refuse(asRefusal(error), request, response)
    }
  }
  http.on('request', (request, response) => {
    const call = followCall(request, { isCounted: false })
    if (call === undefined) return onCall(request, response)
    response.once('close', () => call.end({ status: response.headersSent ? response.statusCode : undefined }))
    call.during(() => onCall(request, response))
  })

  const refusePort = (problem: Problem, request: IncomingMessage, socket: Duplex) => {
    const code = problem instanceof NothingListens ? 'nothing_listens' : problem.code
    const body = JSON.stringify({ message: problem.message })
    const length = String(Buffer.byteLength(body))
    const headers = [problemHeader, code, 'Content-Length', length, 'Connection', 'close']
    if (problem.status >= 500 && problem.cause !== undefined) log.debug({ err: problem.cause }, problem.message)
    socket.write(headOf(problem.status, 'Refused', headers) + (request.method === 'HEAD' ? '' : body))
    endSoon(socket)
  }

  const connectToPort = async (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    try {
      const { place, port = 0 } = placeIn(request)
      const other = await inside.dial(place, port)
      if (socket.destroyed) return void other.destroy()
      socket.write(headOf(101, 'Switching Protocols', ['Connection', 'Upgrade', 'Upgrade', portProtocol]))
      if (head.length > 0) socket.unshift(head)
      join(socket, other)
    } catch (error) {
      if (!socket.destroyed) refusePort(asRefusal(error), request, socket)
    }
  }

  const upgradeToolbox = async (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    try {
      const { place, rest } = placeIn(request)
      await passUpgrade(toolbox, request, socket, { head, entering: place, rest })
    } catch (error) {
      const problem = asRefusal(error)
      if (socket.destroyed) return
      if (isToldAfterUpgrade(problem, request)) refuseSocket(problem, request, socket, head)
      else refuseUpgrade(problem, request, socket)
    }
  }
  http.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    const isForPort = request.headers.upgrade === portProtocol
    void (isForPort ? connectToPort : upgradeToolbox)(request, socket, head)
  })
  http.on('clientError', (_error, socket) => socket.destroy())

  const renewal = setInterval(() => {
    try {
      const { options } = certificates
      if (options === current) return
      server.setSecureContext({ ...options, minVersion: 'TLSv1.3' })
      current = options
    } catch (err) {
      log.warn({ err }, 'the certificate of this gate cannot be read; the one before is used')
    }
  }, renewMs).unref()

  server.listen({ ...listen, backlog })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  log.info({ host: listen.host, port }, 'serving other gates')
  return {
    port,
    close: async () => {
      clearInterval(renewal)
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
