// Limits request bodies and WebSocket frames that have not arrived completely, because the server keeps them in memory
// until then. Each body must have a minimum speed, and all of them together have a memory limit.
//
// A timer reads how many bytes each connection has received, so the arrival of a piece costs no extra work.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest, RequestPayload } from 'fastify'
import type { WebSocket } from 'ws'
import { Problem } from '#src/problems.ts'
import { Shares } from './shares.ts'
import { SlowBodies, type SlowBodiesBounds, tooSlow } from './slow-bodies.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True if the route reads the body itself, as a stream. */
    streamsBody?: boolean
    takesJson?: boolean
  }
}

type Bounds = {
  /** Returns the owner that the bytes of a request count for. */
  ownerOf: (request: FastifyRequest) => string
  /**
   * Maximum number of bytes of all unfinished bodies and frames. If there are more, the oldest one of the owner with the
   * most bytes is evicted: the body is refused, or the frame's connection is closed.
   */
  mostBytes?: number
  /**
   * Minimum speed of a body. It does not apply to WebSockets, which may be silent and are checked with pings
   * (socket.ts).
   */
  slow?: SlowBodiesBounds
  lookMs?: number
}

type Coming = {
  connection: Socket
  owner: string
  /** Number of bytes that the connection had received before this body or frame began. */
  from: number
  /** The request with the body, and how to refuse it. Absent for a frame of a WebSocket. */
  body?: { raw: IncomingMessage; refuse: (problem: Problem) => void }
}

/**
 * Returns a function that makes reading the body fail with a Problem, which the client gets as the answer. If an answer was
 * sent already, or nobody reads the body, the function closes the connection.
 */
const refuserOf = (connection: Socket, payload: RequestPayload, reply: FastifyReply) => (problem: Problem) => {
  if (reply.sent || payload.listenerCount('error') === 0) connection.destroy()
  else payload.emit('error', problem)
}

/**
 * Adds the limits of request bodies and WebSocket frames to a server. Must be called after the WebSocket plugin is
 * registered.
 */
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
    // Most bodies have arrived completely by now, because checking the caller's credential has taken some time. A
    // complete body needs no limit.
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
