// Sends events about state changes to clients, over the part of Socket.IO 4 that the public SDK uses.
// An event may be lost. The client then learns of the change by its next poll of the API.
import { randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { Compile } from 'typebox/compile'
import type { RawData, WebSocket } from 'ws'
import { admitConnection } from '#src/http/connections.ts'
import { boundMessages } from '#src/http/server.ts'
import { bytesOf } from '#src/http/socket.ts'
import { Problem } from '#src/problems.ts'
import type { Limits } from '../rate-limits/limits.ts'
import type { RunningParts } from '../running.ts'
import { openWatchers, type Watcher, type Watchers } from './watchers.ts'

const signInMilliseconds = 10_000

/**
 * Maximum number of bytes that wait for one client. Above this number, control disconnects the client, because it does not
 * read.
 */
const mostBufferedBytes = 1024 * 1024
/** Longest message from a client, in bytes. */
const longestMessage = 16 * 1024

/**
 * Checks a credential with `find`, which returns the credential's organization. Limits the number of invalid credentials per
 * address.
 */
type TryCredential = (find: () => Promise<string | undefined>) => Promise<string | undefined>

/** The first digit of a packet is the Engine.IO type. `4` means a message, and the next digit is the Socket.IO type. */
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

const serveSocket = (
  { callers, log, options }: RunningParts,
  watchers: Watchers,
  socket: WebSocket,
  namedOrganization: string | undefined,
  tryCredential: TryCredential,
  onSignIn: (organizationId: string) => void,
): void => {
  const pingMilliseconds = options.eventPingSeconds * 1000
  const pongMilliseconds = options.eventPongSeconds * 1000
  const sid = randomBytes(15).toString('base64url')
  let watcher: Watcher | undefined
  let isSigningIn = false
  let hasAnswered = true

  const findOrganization = async (given: string): Promise<string | undefined> => {
    const holder = await callers.find(given)
    return (await holder?.in(namedOrganization))?.organization.id
  }

  const refuse = (message = 'Unauthorized') => {
    socket.send(`${packet.refusal}${JSON.stringify({ message })}`)
    socket.close(1000)
  }

  const signIn = async (text: string) => {
    const given = readSignIn(text)
    const found = await tryCredential(async () => given && (await findOrganization(given)))
    if (given === undefined || found === undefined) return refuse()
    if (socket.readyState !== socket.OPEN) return
    const signedIn: Watcher = {
      organizationId: found,
      isAllowed: async () => (await findOrganization(given)) === found,
      tell: (text) => {
        if (socket.bufferedAmount > mostBufferedBytes) socket.terminate()
        else socket.send(`${packet.event}${text}`)
      },
      putOut: () => socket.close(1008, 'Unauthorized'),
      close: () => socket.close(1001),
    }
    if (!watchers.add(signedIn)) return socket.close(1013, 'too many connections')
    watcher = signedIn
    onSignIn(found)
    socket.send(`${packet.connect}${JSON.stringify({ sid })}`)
  }

  const tick = async () => {
    // The timers `deadline` and `pong` disconnect a client that does not sign in, or does not answer a ping.
    if (watcher === undefined || !hasAnswered) return
    // The credential is checked at each ping, because control gets no notification when a credential expires.
    if (!(await watcher.isAllowed())) return watcher.putOut()
    hasAnswered = false
    socket.send(packet.ping)
    pong = setTimeout(() => hasAnswered || socket.terminate(), pongMilliseconds)
  }

  const failed = (error: unknown) => {
    log.warn({ err: error }, 'an event socket failed')
    socket.terminate()
  }
  const signInFailed = (error: unknown) => {
    if (error instanceof Problem && error.code === 'rate_limited') refuse(error.message)
    else failed(error)
  }
  let pong: NodeJS.Timeout | undefined
  const ping = setInterval(() => void tick().catch(failed), pingMilliseconds)
  const deadline = setTimeout(() => watcher === undefined && socket.close(1008), signInMilliseconds)

  socket.on('message', (data: RawData) => {
    const text = bytesOf(data).toString()
    if (text === packet.pong) hasAnswered = true
    else if (text === packet.ping) {
      // A client that does not read gets no answers to its pings, because unsent answers would fill the memory of
      // control.
      if (socket.bufferedAmount === 0) socket.send(packet.pong)
    } else if (text.startsWith(packet.disconnect)) socket.close(1000)
    else if (text.startsWith(packet.connect) && !isSigningIn) {
      isSigningIn = true
      signIn(text).catch(signInFailed)
    }
  })
  socket.on('close', () => {
    clearInterval(ping)
    clearTimeout(deadline)
    clearTimeout(pong)
    if (watcher !== undefined) watchers.leave(watcher)
  })

  const open = {
    sid,
    upgrades: [],
    pingInterval: pingMilliseconds,
    pingTimeout: pongMilliseconds,
    maxPayload: 1_000_000,
  }
  socket.send(`${packet.open}${JSON.stringify(open)}`)
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

/** Serves `{prefix}/socket.io/` for each prefix. Call this before the server listens. */
export const attachEvents = async (
  server: FastifyInstance,
  parts: RunningParts,
  limits: Pick<Limits, 'anonymous' | 'tryCredential'>,
  prefixes: readonly string[] = ['/api', ''],
): Promise<void> => {
  const watchers = await openWatchers(parts)
  server.addHook('preClose', async () => watchers.close())
  const refusePolling = async () => {
    throw new Problem('bad_request', 'Events are served over a WebSocket only: use EIO=4 and transport=websocket.')
  }
  for (const prefix of prefixes) {
    server.route({
      method: 'GET',
      url: `${prefix}/socket.io/`,
      onRequest: limits.anonymous,
      preValidation: async (request: FastifyRequest) => {
        const { EIO } = request.query as Record<string, unknown>
        if (request.ws && EIO !== '4') throw new Problem('bad_request', 'Events are served with EIO=4 only.')
        boundMessages(request, longestMessage)
      },
      handler: refusePolling,
      wsHandler: (socket, request) => {
        const { organizationId } = request.query as Record<string, unknown>
        serveSocket(
          parts,
          watchers,
          socket,
          textOf(organizationId),
          (find) => limits.tryCredential(request, find),
          (organizationId) => admitConnection(request.raw.socket, organizationId),
        )
      },
    })
    server.route({ method: 'POST', url: `${prefix}/socket.io/`, handler: refusePolling })
  }
}
