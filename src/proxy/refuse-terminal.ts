// Tells a caller why its WebSocket is not served, after the upgrade: clients of terminals show nothing of an earlier answer.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { closeWith, sendWhole } from '#src/http/socket.ts'
import type { Problem } from '#src/problems.ts'

const terminal = /\/process\/pty\/(?:create-connect|[^/?]+\/connect)(?:\?|$)/
const closeMs = 5000

/** What the client sends meanwhile is typing, which nobody takes. A caller who offers subprotocols has to be given one. */
const server = new WebSocketServer({
  noServer: true,
  maxPayload: 64 * 1024,
  handleProtocols: (offered) => [...offered][0] ?? false,
})

export const isTerminal = ({ url = '/' }: IncomingMessage): boolean => terminal.test(url)

/** contract/toolbox.md §5.1: an `error` message, then a close. Within a bound the connection is gone. */
export const refuseTerminal = ({ message }: Problem, request: IncomingMessage, socket: Duplex, head: Buffer): void => {
  const timer = setTimeout(() => socket.destroy(), closeMs).unref()
  socket.once('close', () => clearTimeout(timer))
  server.handleUpgrade(request, socket, head, async (client) => {
    client.on('error', () => socket.destroy())
    await sendWhole(client, JSON.stringify({ type: 'control', status: 'error', error: message })).catch(() => undefined)
    closeWith(client, 1011, JSON.stringify({ error: message }))
  })
}
