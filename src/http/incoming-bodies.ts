// A body that is read whole, and a frame of a socket, lie in our memory until their last byte has come, and whoever sends them
// may never send it. So they have bounds: of speed, for each body, and of memory, for all of them together.
//
// What has come is read from the connections now and then: nothing is added to the way of each piece.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest, RequestPayload } from 'fastify'
import type { WebSocket } from 'ws'
import { Problem } from '#src/problems.ts'
import { Shares } from './shares.ts'
import { SlowBodies, type SlowBodiesBounds, tooSlow } from './slow-bodies.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route reads the body itself, as it comes. */
    streamsBody?: boolean
    takesJson?: boolean
  }
}

type Bounds = {
  /** Whoever it is for. */
  ownerOf: (request: FastifyRequest) => string
  /** All that has come and is not whole; beyond it, who has most there gives way, with what has been coming for longest. */
  mostBytes?: number
  /** How slow a body may be. A socket is kept alive by other means. */
  slow?: SlowBodiesBounds
  lookMs?: number
}

type Coming = {
  connection: Socket
  owner: string
  /** Bytes of the connection when this body began. */
  from: number
  /** Absent: of a socket. */
  body?: { raw: IncomingMessage; refuse: (problem: Problem) => void }
}

/** Whoever reads a body hears of the problem, and it is answered as any other; where that is too late the connection ends. */
const refuserOf = (connection: Socket, payload: RequestPayload, reply: FastifyReply) => (problem: Problem) => {
  if (reply.sent || payload.listenerCount('error') === 0) connection.destroy()
  else payload.emit('error', problem)
}

/** To be called after the plugin of sockets is there. */
export const boundIncoming = (server: FastifyInstance, { ownerOf, mostBytes, slow, lookMs = 500 }: Bounds): void => {
  const coming = new Set<Coming>()
  const shares = new Shares<Coming>(mostBytes)
  const slowBodies = new SlowBodies(slow)
  const owners = new WeakMap<IncomingMessage, string>()
  let timer: NodeJS.Timeout | undefined

  const forget = (it: Coming) => {
    coming.delete(it)
    shares.remove(it)
    if (coming.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  const cutOff = (it: Coming, problem: Problem) => {
    forget(it)
    if (it.body) it.body.refuse(problem)
    else it.connection.destroy()
  }

  const look = () => {
    for (const it of coming) {
      if (it.body?.raw.complete) forget(it)
      else shares.put(it, it.owner, it.connection.bytesRead - it.from)
    }
    const crowded = 'More is being sent than this server can take at once. Try again.'
    shares.fit((it) => cutOff(it, new Problem('unavailable', crowded)))
  }

  const follow = (connection: Socket, owner: string, body?: Coming['body']): Coming => {
    const it = { connection, owner, from: connection.bytesRead, ...(body && { body }) }
    coming.add(it)
    timer ??= setInterval(look, lookMs).unref()
    return it
  }

  server.addHook('preParsing', (request, reply, payload, done) => {
    const { raw, routeOptions } = request
    // Most bodies are here before anybody has found out who calls.
    const isRead = request.method !== 'GET' && request.method !== 'HEAD' && !routeOptions.config.streamsBody
    if (request.ws) owners.set(raw, ownerOf(request))
    else if (isRead && !raw.complete) {
      const refuse = refuserOf(raw.socket, payload, reply)
      const it = follow(raw.socket, ownerOf(request), { raw, refuse })
      const stop = slowBodies.follow(raw, () => cutOff(it, new Problem('timeout', tooSlow)))
      reply.raw.once('close', () => {
        stop()
        forget(it)
      })
    }
    done(null, payload)
  })
  server.websocketServer.on('connection', (socket: WebSocket, raw: IncomingMessage) => {
    const connection = raw.socket
    const it = follow(connection, owners.get(raw) ?? connection.remoteAddress ?? '')
    socket.on('message', () => {
      it.from = connection.bytesRead
    })
    socket.once('close', () => forget(it))
  })
}
