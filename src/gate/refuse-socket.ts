// Tells a caller why its WebSocket is not served, after the upgrade: most clients show nothing of an answer before it.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { closeWith, sendWhole } from '#src/http/socket.ts'
import type { Problem } from '#src/problems.ts'
import { sdkVersionHeader } from '#src/wire/access.ts'

const closeMs = 5000

/** How a socket of the toolbox says that it failed, and how it is closed. */
type Wording = (message: string) => { last: object; reason: string }

/**
 * Followed logs are missing here: SDKs take every close for the end of the logs, and only an
 * answer before the upgrade is an error to them.
 */
const wordings: readonly (readonly [path: RegExp, wording: Wording])[] = [
  [
    /\/process\/pty\/(?:create-connect|[^/?]+\/connect)(?:\?|$)/,
    (error) => ({ last: { type: 'control', status: 'error', error }, reason: JSON.stringify({ error }) }),
  ],
  [
    /\/process\/interpreter\/execute(?:\?|$)/,
    (value) => ({ last: { type: 'error', name: 'InterpreterUnavailable', value, traceback: '' }, reason: value }),
  ],
]

/** Undefined where the refusal is plain HTTP: the socket is another one, or this is not how a WebSocket begins. */
const wordingOf = ({ url = '/', headers }: IncomingMessage): Wording | undefined => {
  const isWebSocket = headers['sec-websocket-key'] !== undefined && headers['sec-websocket-version'] === '13'
  return isWebSocket ? wordings.find(([path]) => path.test(url))?.[1] : undefined
}

/** SDKs and browsers hide the status and the body of a refused upgrade from their users; other clients can read them. */
const hidesAnswers = ({ headers }: IncomingMessage): boolean =>
  headers.origin !== undefined ||
  headers[sdkVersionHeader] !== undefined ||
  /\bx-daytona-sdk-version~/i.test(headers['sec-websocket-protocol'] ?? '')

/** A sandbox that does not run is told so by any client's terminal, since the toolbox says so in the same way. */
export const isToldAfterUpgrade = (problem: Problem, request: IncomingMessage): boolean =>
  wordingOf(request) !== undefined && (problem.code === 'not_started' || hidesAnswers(request))

/** Takes the little that a client says before it reads. A caller who offers subprotocols has to be given one. */
const server = new WebSocketServer({
  noServer: true,
  maxPayload: 64 * 1024,
  handleProtocols: (offered) => [...offered][0] ?? false,
})

/** Only for what `isToldAfterUpgrade`. Within a bound the connection is gone. */
export const refuseSocket = (
  { message }: Problem,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  withinMs = closeMs,
): void => {
  const { last, reason } = wordingOf(request)!(message)
  const timer = setTimeout(() => socket.destroy(), withinMs).unref()
  socket.once('close', () => clearTimeout(timer))
  server.handleUpgrade(request, socket, head, async (client) => {
    // A client that sends more than is taken has to hear the reason all the same, so the rest is read away.
    client.on('error', () => socket.resume().end())
    await sendWhole(client, JSON.stringify(last)).catch(() => undefined)
    closeWith(client, 1011, reason)
  })
}
