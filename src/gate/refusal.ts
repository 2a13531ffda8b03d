// Tells a caller why the gate refused, in the toolbox's error format.
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { endSoon, headOf } from '#src/http/linger.ts'
import { renderProblem } from '#src/http/render-problem.ts'
import { Problem } from '#src/problems.ts'
import { corsHeaders } from './cors.ts'

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

/** Sends a refusal. `page`: the page for a person, with its headers. */
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
  // The response may still have the status text of a server's answer that the gate failed to pass on.
  response.writeHead(problem.status, STATUS_CODES[problem.status] ?? 'Error', [
    ...corsHeaders(request),
    ...(page?.headers ?? jsonHeaders(body)),
  ])
  response.end(body)
}

/** Refuses an upgrade with a plain HTTP answer, directly on the socket, because the HTTP server no longer handles this socket. */
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
