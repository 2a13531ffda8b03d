// Follows every call of a server that is made of route rows.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Attributes, isFollowed } from '#src/kit/telemetry/telemetry.ts'
import type { Problem } from '#src/problems.ts'
import { type FollowedCall, followCall } from './followed-call.ts'

const calls = new WeakMap<FastifyRequest, FollowedCall>()

/** Reading a body loses what goes along with asynchronous work, so each part of a call is done in here. */
export const inCall = <T>(request: FastifyRequest, work: () => T): T => {
  const call = calls.get(request)
  return call === undefined ? work() : call.during(work)
}

type FollowOptions = {
  /** Why a request was refused. */
  problemOf: (request: FastifyRequest) => Problem | undefined
  /** What else is told of it. */
  tell: (request: FastifyRequest) => Attributes
}

/** Before any other hook. Where nobody watches nothing is added. */
export const followCalls = (server: FastifyInstance, { problemOf, tell }: FollowOptions): void => {
  if (!isFollowed()) return
  const end = (request: FastifyRequest, status: number) => {
    calls.get(request)?.end({
      route: request.routeOptions.url,
      status,
      problem: problemOf(request)?.code,
      attributes: tell(request),
    })
  }
  server.addHook('onRequest', (request, _reply, done) => {
    const call = followCall(request.method, request.headers)
    if (call !== undefined) calls.set(request, call)
    done()
  })
  server.addHook('preHandler', (request, _reply, done) => {
    // From here on it is a connection, and how long that is open says nothing.
    if (request.ws) end(request, 101)
    done()
  })
  server.addHook('onResponse', (request, reply, done) => {
    end(request, reply.statusCode)
    done()
  })
  server.addHook('onRequestAbort', (request, done) => {
    calls.get(request)?.end({ route: request.routeOptions.url })
    done()
  })
}
