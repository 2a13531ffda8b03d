// Passes HTTP/2 on, stream by stream, with trailers and resets, which gRPC needs. Extended CONNECT is not offered, so
// clients use HTTP/1.1 for WebSockets.
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { guarded } from './guarded.ts'
import { bodyOf, isFor, leadsAway, type Opened, type OwnAnswer, ownAnswers } from './opened.ts'
import { checkHead, HeadTooLarge, inHeader, inTarget, mostHeadBytes } from './replace.ts'

const settings = { enablePush: false, maxConcurrentStreams: 128, maxHeaderListSize: mostHeadBytes }
const mostMegabytes = 4
const idleMs = 5 * 60_000

const answerOwn = (stream: ServerHttp2Stream, answer: OwnAnswer) => {
  if (stream.destroyed || stream.closed) return
  if (stream.headersSent) return void stream.close(constants.NGHTTP2_INTERNAL_ERROR)
  stream.respond({ ':status': answer.status, 'content-type': 'application/json' })
  stream.end(bodyOf(answer))
}

const valuesOf = <H extends object>(headers: H) =>
  Object.entries(headers) as [name: string, value: string | readonly string[] | undefined][]

/**
 * Returns the headers for the server, with secrets in place of placeholders. For a refused request, returns the proxy's
 * own answer.
 */
const rewritten = (opened: Opened, headers: IncomingHttpHeaders): IncomingHttpHeaders | OwnAnswer => {
  if (headers[':method'] === 'CONNECT') return ownAnswers.tunnel
  const { ':authority': authority, host } = headers
  // With another scheme than https, the path may be a whole URL for another host, which the checks below would not notice.
  if (headers[':scheme'] !== 'https') return ownAnswers.misdirected
  if (!isFor(opened, authority ?? host) || (host !== undefined && !isFor(opened, host))) return ownAnswers.misdirected
  const secrets = opened.secrets()
  try {
    const filled = valuesOf(headers).map(([name, value]) => {
      if (name === ':path') return [name, inTarget(secrets, String(value))] as const
      if (name.startsWith(':') || name === 'host' || value === undefined) return [name, value] as const
      const put = (text: string) => inHeader(secrets, name, text)
      return [name, typeof value === 'string' ? put(value) : value.map(put)] as const
    })
    checkHead(
      '',
      filled.flatMap(([name, value]) => [name, value].flat()),
    )
    return Object.fromEntries(filled) as IncomingHttpHeaders
  } catch (error) {
    if (error instanceof HeadTooLarge) return ownAnswers.tooLarge
    throw error
  }
}

const isOwn = (headers: IncomingHttpHeaders | OwnAnswer): headers is OwnAnswer =>
  'status' in headers && 'message' in headers && typeof headers.status === 'number'

const withoutAltSvc = (headers: object) =>
  Object.fromEntries(valuesOf(headers).filter(([name]) => !leadsAway(name))) as OutgoingHttpHeaders

/** Passes the trailers of one stream on to the other stream, after the last byte of the body. */
const passTrailers = (from: ServerHttp2Stream | ClientHttp2Stream, to: ServerHttp2Stream | ClientHttp2Stream) => {
  let trailers: object = {}
  from.on('trailers', (found) => {
    trailers = found
  })
  to.on(
    'wantTrailers',
    guarded(
      () => to.sendTrailers(withoutAltSvc(trailers)),
      () => to.close(constants.NGHTTP2_INTERNAL_ERROR),
    ),
  )
}

const forward = (
  far: ClientHttp2Session,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  hasEnded: boolean,
) => {
  const outgoing = far.request(headers, { endStream: hasEnded, waitForTrailers: !hasEnded })
  passTrailers(stream, outgoing)
  passTrailers(outgoing, stream)
  const lost = () => {
    answerOwn(stream, ownAnswers.lost)
    outgoing.close(constants.NGHTTP2_CANCEL)
  }
  const inform = (information: IncomingHttpHeaders) => {
    if (!stream.destroyed && !stream.headersSent) stream.additionalHeaders(withoutAltSvc(information))
  }
  const give = (answer: IncomingHttpHeaders, flags: number) => {
    if (stream.destroyed || stream.closed) return
    const endStream = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
    stream.respond(withoutAltSvc(answer), { endStream, waitForTrailers: !endStream })
    if (!endStream) outgoing.pipe(stream)
  }
  outgoing.on('headers', guarded(inform, lost))
  outgoing.on('response', guarded(give, lost))
  outgoing.on('error', lost)
  outgoing.on('close', () => {
    if (outgoing.rstCode !== constants.NGHTTP2_NO_ERROR && !stream.destroyed && stream.headersSent)
      stream.close(outgoing.rstCode)
    else if (!stream.headersSent) answerOwn(stream, ownAnswers.lost)
  })
  stream.on('error', () => outgoing.close(constants.NGHTTP2_CANCEL))
  stream.on('close', () => {
    if (!outgoing.closed) outgoing.close(stream.rstCode || constants.NGHTTP2_CANCEL)
  })
  if (!hasEnded) stream.pipe(outgoing)
}

const closeTogether = (near: ServerHttp2Session, far: ClientHttp2Session) => {
  far.on('goaway', () => near.close())
  far.on('close', () => near.close())
  far.on('error', () => near.close())
  near.on('close', () => far.destroy())
}

/** Serves HTTP/2 to the program in the sandbox, on a connection whose TLS the proxy for secrets decrypts. */
export const serveHttp2 = (socket: TLSSocket, opened: Opened): void => {
  const options = {
    settings,
    maxSessionMemory: mostMegabytes,
    maxHeaderListPairs: 256,
    maxSendHeaderBlockLength: 2 * mostHeadBytes,
  }
  const near = performServerHandshake(socket, options) as ServerHttp2Session
  const { server } = opened
  const far =
    'failure' in server
      ? undefined
      : connect(`https://${opened.serverName}`, { ...options, createConnection: () => server.socket })
  if (far !== undefined) closeTogether(near, far)
  near.on('error', () => far?.destroy())
  near.setTimeout(idleMs, () => near.close())
  near.on('stream', (stream, headers, flags) => {
    stream.on('error', () => {})
    if ('failure' in server) return answerOwn(stream, { status: 502, message: server.failure })
    const filled = rewritten(opened, headers)
    if (isOwn(filled)) return answerOwn(stream, filled)
    if (far === undefined || far.closed || far.destroyed) return void stream.close(constants.NGHTTP2_REFUSED_STREAM)
    const hasEnded = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
    guarded(forward, () => answerOwn(stream, ownAnswers.lost))(far, stream, filled, hasEnded)
  })
}
