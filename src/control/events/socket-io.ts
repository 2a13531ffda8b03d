// State changes as they happen, in the small part of Socket.IO 4 that the public SDK speaks (contract/sdk-extra.md §3):
// Engine.IO 4 over a WebSocket and nothing else, one namespace, events from the server only. Losing one costs latency:
// clients poll beside it.
import { randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { Compile } from 'typebox/compile'
import type { RawData, WebSocket } from 'ws'
import type { Change } from '#src/control/sandboxes/changes.ts'
import type { SandboxParts } from '#src/control/sandboxes/parts.ts'
import { asRecord } from '#src/control/sandboxes/sandbox.ts'
import { findSandboxById } from '#src/control/sandboxes/service.ts'
import { Problem } from '#src/problems.ts'

const pongMilliseconds = 20_000
const signInMilliseconds = 10_000

/** A client that has taken none of this much is not reading. */
const mostBufferedBytes = 1024 * 1024
const longestMessage = 16 * 1024
const mostPerOrganization = 1000
const mostWaiting = 10_000

/** Engine.IO's packet kinds, and Socket.IO's inside of `message`. */
const packet = { open: '0', ping: '2', pong: '3', connect: '40', disconnect: '41', event: '42', refusal: '44' } as const

const SignIn = Compile(Type.Object({ token: Type.String({ minLength: 1, maxLength: 8192 }) }))

const readSignIn = (text: string): string | undefined => {
  try {
    const given: unknown = JSON.parse(text.slice(packet.connect.length))
    return SignIn.Check(given) ? given.token : undefined
  } catch {
    return undefined
  }
}

type Watchers = Map<string, Set<WebSocket>>

const serveSocket = (
  { callers, log, options }: SandboxParts,
  watchers: Watchers,
  socket: WebSocket,
  namedOrganization: string | undefined,
): void => {
  const pingMilliseconds = options.eventPingSeconds * 1000
  const sid = randomBytes(15).toString('base64url')
  let token: string | undefined
  let organizationId: string | undefined
  let hasAnswered = true

  const findOrganization = async (given: string): Promise<string | undefined> => {
    const holder = await callers.find(given)
    return (await holder?.in(namedOrganization))?.organization.id
  }

  const refuse = () => {
    socket.send(`${packet.refusal}${JSON.stringify({ message: 'Unauthorized' })}`)
    socket.close(1000)
  }

  const signIn = async (text: string) => {
    const given = readSignIn(text)
    const found = given === undefined ? undefined : await findOrganization(given)
    if (given === undefined || found === undefined) return refuse()
    const others = watchers.get(found) ?? new Set()
    if (others.size >= mostPerOrganization) return socket.close(1013, 'too many connections')
    if (socket.readyState !== socket.OPEN) return
    token = given
    organizationId = found
    watchers.set(found, others.add(socket))
    socket.send(`${packet.connect}${JSON.stringify({ sid })}`)
  }

  const tick = async () => {
    // Who has not signed in yet has until the deadline; who has not answered yet, until the pong's.
    if (token === undefined || !hasAnswered) return
    // A key that was revoked in the meantime hears no more.
    if ((await findOrganization(token)) === undefined) return socket.close(1008, 'Unauthorized')
    hasAnswered = false
    socket.send(packet.ping)
    pong = setTimeout(() => hasAnswered || socket.terminate(), pongMilliseconds)
  }

  const failed = (error: unknown) => {
    log.warn({ err: error }, 'an event socket failed')
    socket.terminate()
  }
  let pong: NodeJS.Timeout | undefined
  const ping = setInterval(() => void tick().catch(failed), pingMilliseconds)
  const deadline = setTimeout(() => organizationId === undefined && socket.close(1008), signInMilliseconds)

  socket.on('message', (data: RawData) => {
    const text = String(data)
    if (text.length > longestMessage) return socket.close(1009)
    if (text === packet.pong) hasAnswered = true
    else if (text === packet.ping) socket.send(packet.pong)
    else if (text.startsWith(packet.disconnect)) socket.close(1000)
    else if (text.startsWith(packet.connect) && token === undefined) signIn(text).catch(failed)
    // Whatever else clients send has no meaning here.
  })
  socket.on('close', () => {
    clearInterval(ping)
    clearTimeout(deadline)
    clearTimeout(pong)
    if (organizationId === undefined) return
    const others = watchers.get(organizationId)
    others?.delete(socket)
    if (others?.size === 0) watchers.delete(organizationId)
  })
  socket.on('error', () => socket.terminate())

  const open = {
    sid,
    upgrades: [],
    pingInterval: pingMilliseconds,
    pingTimeout: pongMilliseconds,
    maxPayload: 1_000_000,
  }
  socket.send(`${packet.open}${JSON.stringify(open)}`)
}

/** Tells every socket of the organization, after the change has been committed. */
const createTeller = ({ database, settings, log }: SandboxParts, watchers: Watchers) => {
  let waiting = 0
  // In the order in which the changes were heard.
  let last: Promise<void> = Promise.resolve()

  const tell = async ({ sandboxId, organizationId, from, to, row }: Change) => {
    const sockets = watchers.get(organizationId)
    if (sockets === undefined) return
    const found = row ?? (await findSandboxById(database.sql, sandboxId))
    if (found === undefined) return
    const sandbox = asRecord(found, settings.proxyUrl)
    const event =
      from === null
        ? ['sandbox.created', sandbox]
        : ['sandbox.state.updated', { sandbox, oldState: from, newState: to }]
    const text = `${packet.event}${JSON.stringify(event)}`
    for (const socket of sockets) {
      if (socket.bufferedAmount > mostBufferedBytes) socket.terminate()
      else socket.send(text)
    }
  }

  return (change: Change) => {
    if (!watchers.has(change.organizationId) || waiting >= mostWaiting) return
    waiting += 1
    last = last
      .then(() => tell(change))
      .catch((error) => log.warn({ err: error, sandboxId: change.sandboxId }, 'a change could not be told'))
      .finally(() => {
        waiting -= 1
      })
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

/** Serves `{prefix}/socket.io/`. Call before the server listens. */
export const attachEvents = (
  server: FastifyInstance,
  parts: SandboxParts,
  prefixes: readonly string[] = ['/api', ''],
): void => {
  const watchers: Watchers = new Map()
  const stop = parts.changes.hear(createTeller(parts, watchers))
  server.addHook('preClose', async () => {
    stop()
    for (const sockets of watchers.values()) for (const socket of sockets) socket.close(1001)
  })
  const refusePolling = async () => {
    throw new Problem('bad_request', 'Events are served over a WebSocket only: use EIO=4 and transport=websocket.')
  }
  for (const prefix of prefixes) {
    server.route({
      method: 'GET',
      url: `${prefix}/socket.io/`,
      preValidation: async (request: FastifyRequest) => {
        const { EIO } = request.query as Record<string, unknown>
        if (request.ws && EIO !== '4') throw new Problem('bad_request', 'Events are served with EIO=4 only.')
      },
      handler: refusePolling,
      wsHandler: (socket, request) => {
        const { organizationId } = request.query as Record<string, unknown>
        serveSocket(parts, watchers, socket, textOf(organizationId))
      },
    })
    server.route({ method: 'POST', url: `${prefix}/socket.io/`, handler: refusePolling })
  }
}
