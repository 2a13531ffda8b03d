// Tells a caller why the proxy did not forward, in the toolbox's own error body.
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { renderProblem } from '#src/http/render-problem.ts'
import { Problem } from '#src/problems.ts'
import { corsHeaders } from './cors.ts'
import { hasBody } from './headers.ts'

export const asRefusal = (error: unknown): Problem =>
  error instanceof Problem ? error : new Problem('internal', undefined, { cause: error })

const bodyOf = (problem: Problem, request: IncomingMessage) =>
  JSON.stringify(renderProblem(problem, { url: request.url ?? '/', method: request.method ?? 'GET' }, 'DAYTONA_DAEMON'))

const jsonHeaders = (body: string) => [
  'Content-Type',
  'application/json; charset=utf-8',
  'Content-Length',
  String(Buffer.byteLength(body)),
]

/** `page`: what a person reads in its place, with its headers. */
export const refuse = (
  problem: Problem,
  request: IncomingMessage,
  response: ServerResponse,
  page?: { body: string; headers: readonly string[] },
): void => {
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return
  }
  const body = page?.body ?? bodyOf(problem, request)
  // The words are written again: an answer that could not be passed on may have left its own.
  response.writeHead(problem.status, STATUS_CODES[problem.status] ?? 'Error', [
    ...corsHeaders(request),
    ...(page?.headers ?? jsonHeaders(body)),
    // What is left of an unread body must not be read as the next request, nor be waited for.
    ...(hasBody(request) && !request.complete ? ['Connection', 'close'] : []),
  ])
  response.end(body)
}

/** A status line and headers as they go over the wire. */
export const headOf = (status: number, message: string, headers: readonly string[]): string => {
  const lines = [`HTTP/1.1 ${status} ${message}`]
  for (let at = 0; at + 1 < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}

const lingerMs = 5000

/**
 * For the last that is said on a connection: within a bound it is gone, whatever its other side does. What still comes is read
 * away till then, as the other side of one that is cut off with something unread is told of that instead.
 */
export const endSoon = (socket: Duplex, withinMs = lingerMs): void => {
  const timer = setTimeout(() => socket.destroy(), withinMs).unref()
  socket
    .once('close', () => clearTimeout(timer))
    .resume()
    .end()
}

/** Before an upgrade the answer is plain HTTP, written by hand: the server has given the socket away. */
export const refuseUpgrade = (problem: Problem, request: IncomingMessage, socket: Duplex, withinMs?: number): void => {
  const body = bodyOf(problem, request)
  const head = headOf(problem.status, STATUS_CODES[problem.status] ?? 'Error', [
    ...jsonHeaders(body),
    'Connection',
    'close',
  ])
  socket.write(head + body)
  endSoon(socket, withinMs)
}
