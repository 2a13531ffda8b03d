// Follows every call of a server that is made of route rows. Where somebody further out follows a call already, as the gate does for
// its toolbox, this tells them the route and the outcome, so that one call is told of once.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Attributes, isFollowed } from '#src/kit/telemetry/telemetry.ts'
import type { Problem } from '#src/problems.ts'
import { type FollowedCall, findFollowed, followCall } from './followed-call.ts'

const calls = new WeakMap<FastifyRequest, FollowedCall>()
/** Nobody further out follows these. */
const followedHere = new WeakSet<FastifyRequest>()

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
  const end = (request: FastifyRequest, status?: number) => {
    const call = calls.get(request)
    if (call === undefined) return
    const outcome = {
      route: request.routeOptions.url,
      status,
      problem: problemOf(request)?.code,
      attributes: tell(request),
    }
    if (followedHere.has(request)) call.end(outcome)
    else call.say(outcome)
  }
  server.addHook('onRequest', (request, _reply, done) => {
    const outer = findFollowed(request.raw)
    const call = outer ?? followCall(request.raw)
    if (call !== undefined) calls.set(request, call)
    if (outer === undefined) followedHere.add(request)
    // A refused upgrade has no response that ends.
    else outer.say({ route: request.routeOptions.url })
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
    end(request)
    done()
  })
}
