// A body that is read whole, and a frame of a socket, lie in our memory until their last byte has come, and whoever sends them
// may never send it. So the large ones have bounds: of silence, for each body, and of memory, for all of them together.
//
// What has come is read from the connections now and then: nothing is added to the way of each piece.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { WebSocket } from 'ws'
import { Shares } from './shares.ts'

/** Smaller bodies are not followed: a connection costs as much. */
const largeBytes = 64 * 1024

type Bounds = {
  /** Whoever it is for. */
  ownerOf: (request: FastifyRequest) => string
  /** Read by its route itself, as it comes. */
  isStreamed: (request: FastifyRequest) => boolean
  /** All that has come and is not whole; beyond it, who has most there gives way, with what has been coming for longest. */
  mostBytes?: number
  /** A body of which nothing comes for so long is cut off. A socket is kept alive by other means. */
  silentMs?: number
  lookMs?: number
}

type Coming = {
  owner: string
  isBody: boolean
  /** Of the connection, when this began. */
  from: number
  /** At the last look. */
  read: number
  changedAt: number
}

const mayBeLarge = ({ headers }: FastifyRequest): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > largeBytes

/** To be called after the plugin of sockets is there. */
export const boundIncoming = (
  server: FastifyInstance,
  { ownerOf, isStreamed, mostBytes = 256 * 1024 ** 2, silentMs = 60_000, lookMs = 500 }: Bounds,
): void => {
  const coming = new Map<Socket, Coming>()
  const shares = new Shares<Socket>()
  const owners = new WeakMap<IncomingMessage, string>()
  let timer: NodeJS.Timeout | undefined

  const forget = (connection: Socket) => {
    coming.delete(connection)
    shares.remove(connection)
    if (coming.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  const cutOff = (connection: Socket) => {
    forget(connection)
    connection.destroy()
  }

  const look = () => {
    const now = performance.now()
    for (const [connection, it] of coming) {
      if (connection.bytesRead !== it.read) Object.assign(it, { read: connection.bytesRead, changedAt: now })
      if (it.isBody && now - it.changedAt >= silentMs) cutOff(connection)
      else shares.put(connection, it.owner, it.read - it.from)
    }
    shares.fit(mostBytes, cutOff)
  }

  const follow = (connection: Socket, owner: string, isBody: boolean) => {
    const read = connection.bytesRead
    coming.set(connection, { owner, isBody, from: read, read, changedAt: performance.now() })
    timer ??= setInterval(look, lookMs).unref()
  }

  server.addHook('preParsing', (request, reply, payload, done) => {
    if (request.ws) owners.set(request.raw, ownerOf(request))
    else if (mayBeLarge(request) && !isStreamed(request)) {
      const connection = request.raw.socket
      follow(connection, ownerOf(request), true)
      reply.raw.once('close', () => forget(connection))
    }
    done(null, payload)
  })
  // By now it is whole.
  server.addHook('preValidation', (request, _reply, done) => {
    if (!request.ws) forget(request.raw.socket)
    done()
  })
  server.websocketServer.on('connection', (socket: WebSocket, raw: IncomingMessage) => {
    const connection = raw.socket
    follow(connection, owners.get(raw) ?? connection.remoteAddress ?? '', false)
    socket.on('message', () => {
      const it = coming.get(connection)
      if (it) it.from = connection.bytesRead
    })
    socket.once('close', () => forget(connection))
  })
}
