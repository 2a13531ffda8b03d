// Connects the proxy to a port inside a sandbox (wire/dial.ts). The runner passes bytes on and understands none of them:
// what a hostile server says is parsed by the proxy, which has no privileges.
import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { pour } from '#src/kit/pour.ts'
import { type Agent, AgentRefused } from '#src/toolbox/agent/agent.ts'
import { dialRefusals } from '#src/wire/dial.ts'
import type { HeldSandbox } from './host.ts'
import { untilTaken } from './until-taken.ts'

type DialParts = {
  get: (sandboxId: string) => HeldSandbox | undefined
  agentAt: (socketPath: string) => Agent
}

/** Of one sandbox, so that none takes the descriptors of all; the agent has as many again for everything else. */
const mostConnections = 512
/** What the other side may still say after one has ended. */
const lingerMs = 10_000

const join = (one: Duplex, other: Duplex) => {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    const part = () => {
      to.resume()
      setTimeout(() => to.destroy(), lingerMs).unref()
    }
    from.on('error', () => to.destroy())
    from.once('close', () => {
      // Its end has passed through the pipe, or it broke off: then nobody is to take what came for the whole.
      if (from.readableEnded) part()
      else to.destroy()
    })
    pour(from, to)
  }
  // Of the proxy's side the end is all that is heard when it goes away; a server that only listens would hold on for ever.
  one.once('end', () => setTimeout(() => other.destroy(), lingerMs).unref())
}

const refusalOf = (error: unknown): number => {
  if (!(error instanceof AgentRefused)) return dialRefusals.notStarted
  if (error.stage === 'connect') return dialRefusals.nothingListens
  return error.stage === 'ending' ? dialRefusals.notStarted : dialRefusals.busy
}

export const serveDials = (server: FastifyInstance, { get, agentAt }: DialParts): void => {
  const open = new Map<string, Set<Duplex>>()

  const connect = async (socket: Duplex, { url = '', headers }: IncomingMessage): Promise<number> => {
    const [, sandboxId = '', digits] = /^(.+):(\d{1,5})$/.exec(url) ?? []
    await untilTaken({ get }, sandboxId, headers)
    const held = get(sandboxId)
    const port = Number(digits)
    if (!held || port < 1 || port > 65_535) return dialRefusals.noSandbox
    if (held.status !== 'started') return dialRefusals.notStarted
    const connections = open.get(sandboxId) ?? new Set()
    if (connections.size >= mostConnections) return dialRefusals.busy
    open.set(sandboxId, connections.add(socket))
    socket.once('close', () => {
      connections.delete(socket)
      if (connections.size === 0 && open.get(sandboxId) === connections) open.delete(sandboxId)
    })
    try {
      const inside = await agentAt(held.socketPath).dial(port)
      if (socket.destroyed) inside.destroy()
      else {
        socket.write('HTTP/1.1 200 OK\r\n\r\n')
        join(socket, inside)
      }
      return 200
    } catch (error) {
      return refusalOf(error)
    }
  }

  ;(server.server as Server).on('connect', async (request, socket) => {
    socket.on('error', () => socket.destroy())
    const status = await connect(socket, request).catch(() => dialRefusals.busy)
    if (status !== 200) socket.end(`HTTP/1.1 ${status} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`)
  })
  // The server waits for every connection, also for those that it has given away.
  server.addHook('preClose', async () => {
    for (const connections of open.values()) for (const socket of connections) socket.destroy()
  })
}
