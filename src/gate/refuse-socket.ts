// Tells a caller why its WebSocket is refused, in messages after the upgrade. Most clients do not show the answer to a
// refused upgrade.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { closeWith, sendWhole } from '#src/http/socket.ts'
import type { Problem } from '#src/problems.ts'
import { sdkVersionHeader } from '#src/wire/access.ts'

const closeMs = 5000

/** Returns the last message and the close reason for a WebSocket that the gate refuses. `message`: why it is refused. */
type Wording = (message: string) => { last: object; reason: string }

/**
 * The kinds of WebSocket that are refused after the upgrade. Log streams are refused before, because SDKs treat every close
 * as the end of the logs.
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

/** Returns the function that writes the refusal for this WebSocket. Undefined if the gate must refuse the upgrade in plain HTTP. */
const wordingOf = ({ url = '/', headers }: IncomingMessage): Wording | undefined => {
  const isWebSocket = headers['sec-websocket-key'] !== undefined && headers['sec-websocket-version'] === '13'
  return isWebSocket ? wordings.find(([path]) => path.test(url))?.[1] : undefined
}

/**
 * Whether the client hides the HTTP answer to a refused upgrade from its user. SDKs and browsers hide such answers. For them, the
 * gate upgrades first.
 */
const hidesAnswers = ({ headers }: IncomingMessage): boolean =>
  headers.origin !== undefined ||
  headers[sdkVersionHeader] !== undefined ||
  /\bx-daytona-sdk-version~/i.test(headers['sec-websocket-protocol'] ?? '')

/** Whether to accept a WebSocket and then send the refusal over it. If false, the gate refuses in plain HTTP. */
export const isToldAfterUpgrade = (problem: Problem, request: IncomingMessage): boolean =>
  // If the sandbox is not started, the gate refuses every client after the upgrade, because the toolbox does so too.
  wordingOf(request) !== undefined && (problem.code === 'not_started' || hidesAnswers(request))

/**
 * Accepts a client only to send the refusal, and needs no messages of the client. A client that offers subprotocols must
 * get one of them.
 */
const server = new WebSocketServer({
  noServer: true,
  maxPayload: 64 * 1024,
  handleProtocols: (offered) => [...offered][0] ?? false,
})

/**
 * Sends a refusal after the upgrade. Call this only if `isToldAfterUpgrade` is true. The connection closes within a
 * time limit.
 */
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
    // After an error, read and drop what the client still sends. Otherwise the kernel could reset the connection before the client
    // has read the reason.
    client.on('error', () => socket.resume().end())
    await sendWhole(client, JSON.stringify(last)).catch(() => undefined)
    closeWith(client, 1011, reason)
  })
}
