// Passes HTTP/1.1 on, as streams, and puts secrets into requests. After an accepted upgrade (WebSocket), bytes are copied
// unchanged.
import {
  Agent,
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { guarded } from './guarded.ts'
import { joinStreams } from './join.ts'
import { bodyOf, isFor, leadsAway, type Opened, type OwnAnswer, ownAnswers } from './opened.ts'
import { checkHead, HeadTooLarge, inHeader, inTarget, mostHeadBytes } from './replace.ts'

const headWithinMs = 60_000
const idleMs = 5 * 60_000
/** Maximum number of requests of one connection that wait for their answer at the same time (pipelining). */
const mostAhead = 64
/** Maximum number of answers with status 100 that a server may send before its final answer. */
const mostContinues = 16

const ofConnection = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'te', 'upgrade'])

const pairsOf = (raw: readonly string[]): [name: string, value: string][] =>
  Array.from({ length: raw.length / 2 }, (_, at) => [raw[2 * at] ?? '', raw[2 * at + 1] ?? ''])

/**
 * Names of headers that apply to one connection only (RFC 9110 §7.6.1). Host and Content-Length pass even if Connection
 * names them. Otherwise a server could read the body as a request for another host.
 */
const hopsOf = ({ headers }: IncomingMessage): Set<string> => {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase())
  return new Set([...ofConnection, ...named.filter((name) => name !== 'host' && name !== 'content-length')])
}

/** Thrown for a request that the proxy for secrets answers itself. */
class Refusal extends Error {
  readonly answer: OwnAnswer
  constructor(answer: OwnAnswer) {
    super(answer.message)
    this.answer = answer
  }
}

const targetOf = (opened: Opened, target: string): string => {
  if (target.startsWith('/') || target === '*') return target
  const url = URL.parse(target)
  if (url === null || url.protocol !== 'https:' || !isFor(opened, url.host)) throw new Refusal(ownAnswers.misdirected)
  return `${url.pathname}${url.search}`
}

/**
 * Returns path and headers for the server, with secrets in place of placeholders. Throws a Refusal if the request is for another
 * host, or if path and headers become too long.
 */
const rewritten = (opened: Opened, message: IncomingMessage) => {
  const hosts = pairsOf(message.rawHeaders).filter(([name]) => name.toLowerCase() === 'host')
  if (hosts.length !== 1 || !isFor(opened, hosts[0]?.[1])) throw new Refusal(ownAnswers.misdirected)
  const secrets = opened.secrets()
  const hops = hopsOf(message)
  try {
    const path = inTarget(secrets, targetOf(opened, message.url ?? '/'))
    const headers = pairsOf(message.rawHeaders).flatMap(([name, value]): string[] => {
      const lower = name.toLowerCase()
      // Skip Content-Length here. The header is added later, with the other headers that determine where the body ends.
      if (hops.has(lower) || lower === 'content-length') return []
      return [name, lower === 'host' ? value : inHeader(secrets, name, value)]
    })
    checkHead(path, headers)
    return { path, headers }
  } catch (error) {
    throw error instanceof HeadTooLarge ? new Refusal(ownAnswers.tooLarge) : error
  }
}

const answersOf = (message: IncomingMessage): string[] => {
  const hops = hopsOf(message)
  return pairsOf(message.rawHeaders).flatMap(([name, value]) =>
    hops.has(name.toLowerCase()) || leadsAway(name) ? [] : [name, value],
  )
}

/**
 * A Node HTTP agent for requests to one server. The agent uses the open connection. After the end of that connection, the agent
 * opens another one.
 */
class OneConnection extends Agent {
  #first: TLSSocket | undefined
  readonly #again: () => TLSSocket
  #isOver = false
  constructor(first: TLSSocket, again: () => TLSSocket) {
    super({ keepAlive: true, maxSockets: 1, maxFreeSockets: 1 })
    this.#first = first
    this.#again = again
  }
  override createConnection(_options: unknown, done?: (error: Error | null, stream: Duplex) => void) {
    if (this.#isOver) {
      done?.(new Error('the program has left'), undefined as never)
      return undefined
    }
    const first = this.#first
    this.#first = undefined
    return first !== undefined && !first.destroyed && first.writable ? first : this.#again()
  }
  /** Closes the connections, and prevents new ones. Otherwise Node would open a connection for each request that still waits. */
  override destroy() {
    this.#isOver = true
    super.destroy()
  }
}

type Side = { opened: Opened; agent: OneConnection | undefined; ahead: number }

const sides = new WeakMap<Duplex, Side>()

const requestTo = ({ opened, agent }: Side, message: IncomingMessage, isUpgrade = false) => {
  if ('failure' in opened.server) throw new Refusal({ status: 502, message: opened.server.failure })
  const { path, headers } = rewritten(opened, message)
  const { method = 'GET' } = message
  const upgrade = isUpgrade ? ['Connection', 'Upgrade', 'Upgrade', message.headers.upgrade ?? ''] : []
  const framing = isUpgrade ? noBody(method) : framingOf(message)
  return request({
    ...{ method, path, setHost: false, setDefaultHeaders: false, maxHeaderSize: mostHeadBytes },
    headers: [...headers, ...framing, ...(isUpgrade ? upgrade : ['Connection', 'keep-alive'])],
    ...(agent === undefined ? {} : { agent }),
  })
}

/**
 * Returns the headers that say that a request has no body. Methods outside this list need a length: otherwise Node sends an
 * empty chunked body.
 */
const noBody = (method: string) =>
  ['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'].includes(method) ? [] : ['Content-Length', '0']

const framingOf = ({ method = 'GET', headers }: IncomingMessage): string[] => {
  if (headers['transfer-encoding'] !== undefined) return ['Transfer-Encoding', 'chunked']
  const length = headers['content-length']
  return length === undefined ? noBody(method) : ['Content-Length', length]
}

const answerOwn = (response: ServerResponse, answer: OwnAnswer) => {
  if (response.headersSent) return void response.destroy()
  // The rest of the request body is not read, so close the connection after this answer.
  response.writeHead(answer.status, STATUS_CODES[answer.status], {
    'content-type': 'application/json',
    connection: 'close',
  })
  response.end(bodyOf(answer))
}

const passContinues = (outgoing: ClientRequest, response: ServerResponse): void => {
  let left = mostContinues
  outgoing.on('continue', () => {
    left -= 1
    if (left < 0) outgoing.destroy(new Error('too many answers of status 100'))
    else response.writeContinue()
  })
}

const forward = (side: Side, message: IncomingMessage, response: ServerResponse): void => {
  const outgoing = requestTo(side, message)
  response.sendDate = false
  const give = (answer: IncomingMessage) => {
    response.writeHead(answer.statusCode ?? 502, answer.statusMessage, answersOf(answer))
    response.flushHeaders()
    const broken = () => void response.destroy()
    answer.on(
      'end',
      guarded(() => response.addTrailers(pairsOf(answer.rawTrailers)), broken),
    )
    answer.on('error', broken)
    answer.pipe(response)
  }
  const lost = () => {
    answerOwn(response, ownAnswers.lost)
    outgoing.destroy()
  }
  passContinues(outgoing, response)
  // Interim answers other than 100 are not passed on, because clients need none of them.
  outgoing.on('response', guarded(give, lost))
  // The server has changed the protocol (101), although the client has not asked for an upgrade.
  outgoing.on('upgrade', (_answer, server) => {
    server.destroy()
    lost()
  })
  outgoing.on('error', lost)
  response.on('close', () => {
    if (!response.writableFinished) outgoing.destroy()
  })
  message.on('error', () => outgoing.destroy())
  message.on(
    'end',
    guarded(() => outgoing.addTrailers(pairsOf(message.rawTrailers)), lost),
  )
  message.pipe(outgoing)
  outgoing.flushHeaders()
}

const headText = ({ statusCode, statusMessage, rawHeaders }: IncomingMessage, more: readonly string[] = []): string => {
  const lines = pairsOf([...rawHeaders, ...more])
    .filter(([name]) => !leadsAway(name))
    .map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${statusCode} ${statusMessage}\r\n${lines.join('')}\r\n`
}

const forwardUpgrade = (side: Side, message: IncomingMessage, socket: Duplex, head: Buffer): void => {
  const outgoing = requestTo(side, message, true)
  outgoing.on('upgrade', (answer, server, first) => {
    socket.write(headText(answer), 'latin1')
    if (first.length > 0) socket.write(first)
    if (head.length > 0) server.write(head)
    joinStreams(socket, server)
  })
  // The server has refused the upgrade with an ordinary answer. Pass that answer on, and close the connection after it.
  outgoing.on('response', (answer) => {
    const rest = { ...answer, rawHeaders: answersOf(answer) } as IncomingMessage
    rest.statusCode = answer.statusCode
    rest.statusMessage = answer.statusMessage
    socket.write(headText(rest, ['Connection', 'close']), 'latin1')
    answer.on('error', () => socket.destroy())
    answer.pipe(socket)
  })
  outgoing.on('error', () => refuseSocket(socket, ownAnswers.lost))
  socket.on('close', () => outgoing.destroy())
  outgoing.end()
}

const refuseSocket = (socket: Duplex, answer: OwnAnswer) => {
  if (socket.destroyed) return
  const body = bodyOf(answer)
  socket.end(
    `HTTP/1.1 ${answer.status} Refused\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
}

/** Calls `work` for a client's request. If `work` throws, calls `refuse`, which answers with an error. */
const orRefuse = (socket: Duplex, work: (side: Side) => void, refuse: (answer: OwnAnswer) => void) => {
  const side = sides.get(socket)
  if (side === undefined) return void socket.destroy()
  try {
    work(side)
  } catch (error) {
    if (error instanceof Refusal) refuse(error.answer)
    // Node throws for a header or path that it cannot send, such as one with control characters.
    else refuse({ status: 400, message: 'The request cannot be sent on to the server.' })
  }
}

const makeServer = (): Server => {
  const take = (message: IncomingMessage, response: ServerResponse) =>
    orRefuse(
      message.socket,
      (side) => {
        // Node reads any number of requests ahead on one connection. Close a connection with too many requests that are
        // not answered yet.
        if (side.ahead >= mostAhead) return void message.socket.destroy()
        side.ahead += 1
        response.once('close', () => {
          side.ahead -= 1
        })
        forward(side, message, response)
      },
      (answer) => answerOwn(response, answer),
    )
  const options = {
    maxHeaderSize: mostHeadBytes,
    headersTimeout: headWithinMs,
    requestTimeout: 0,
    requireHostHeader: false,
  }
  const server = createServer({ ...options, keepAliveTimeout: idleMs, connectionsCheckingInterval: 30_000 }, take)
  server.on('checkContinue', take)
  server.on('checkExpectation', take)
  server.on('upgrade', (message, socket, head) => {
    socket.on('error', () => {})
    orRefuse(
      socket,
      (side) => forwardUpgrade(side, message, socket, head),
      (answer) => refuseSocket(socket, answer),
    )
  })
  server.on('connect', (_message, socket) => refuseSocket(socket, ownAnswers.tunnel))
  server.on('clientError', (_error, socket) => refuseSocket(socket, { status: 400, message: 'This is not HTTP.' }))
  return server
}

let server: Server | undefined

/** Serves HTTP/1.1 to the program in the sandbox, on a connection whose TLS the proxy for secrets decrypts. */
export const serveHttp1 = (socket: TLSSocket, opened: Opened): void => {
  server ??= makeServer()
  const { server: far } = opened
  const agent = 'failure' in far ? undefined : new OneConnection(far.socket, far.connectAgain)
  sides.set(socket, { opened, agent, ahead: 0 })
  socket.on('close', () => agent?.destroy())
  server.emit('connection', socket)
}
