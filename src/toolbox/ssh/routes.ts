// The calls of the SSH gateway to a sandbox. They need an SSH token (src/gate/target.ts).
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import Type from 'typebox'
import { Problem } from '#src/problems.ts'
import { route } from '../sandbox.ts'
import { serveCommand } from './command.ts'
import { dialPort, servePort } from './port.ts'

const PortQuery = Type.Object({ port: Type.Integer({ minimum: 1, maximum: 65_535 }) })

/**
 * Connections to ports. They are made before the upgrade to a WebSocket, so that a caller gets an ordinary HTTP refusal if nothing
 * listens on the port.
 */
const dialled = new WeakMap<IncomingMessage, Duplex>()

const needsUpgrade = () => {
  throw new Problem('bad_request', 'This URL must be opened as a WebSocket.')
}

export const sshRoutes = [
  route({
    method: 'GET',
    path: '/ssh/command',
    needs: 'sandbox',
    summary: 'Runs a command, a shell or the SFTP server for the SSH gateway, over a WebSocket.',
    replies: { 101: null },
    run: needsUpgrade,
    socket: (socket, { sandbox }) => void serveCommand(socket, sandbox),
  }),
  route({
    method: 'GET',
    path: '/ssh/port',
    needs: 'sandbox',
    summary: 'Connects the SSH gateway to a TCP port inside the sandbox, over a WebSocket.',
    query: PortQuery,
    replies: { 101: null },
    run: needsUpgrade,
    admit: async ({ sandbox, query, request }) => {
      dialled.set(request.raw, await dialPort(sandbox, query.port))
    },
    socket: (socket, { request }) => {
      const connection = dialled.get(request.raw)
      if (connection === undefined) return socket.terminate()
      void servePort(socket, connection)
    },
  }),
]
