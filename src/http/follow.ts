// Records telemetry for every call of a server. An outer server may record the call already, as the gate does for its
// toolbox. In this case only the route and the outcome are added to that record. So each call is recorded once.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Attributes, isFollowed } from '#src/kit/telemetry/telemetry.ts'
import type { Problem } from '#src/problems.ts'
import { type FollowedCall, findFollowed, followCall } from './followed-call.ts'

const calls = new WeakMap<FastifyRequest, FollowedCall>()
/** Calls that no outer server records. This server ends the records of these calls. */
const followedHere = new WeakSet<FastifyRequest>()

/**
 * Runs `work` in the trace of the call. AsyncLocalStorage loses the trace when a body is read, so each part of a call
 * must be run by this function.
 */
export const inCall = <T>(request: FastifyRequest, work: () => T): T => {
  const call = calls.get(request)
  return call === undefined ? work() : call.during(work)
}

type FollowOptions = {
  /** The problem with which a request was refused. */
  problemOf: (request: FastifyRequest) => Problem | undefined
  /** Returns further attributes of the call, for its record. */
  tell: (request: FastifyRequest) => Attributes
}

/** Adds the hooks that record calls. Call this before any other hook is added. Adds nothing if telemetry is off. */
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
    // A refused upgrade never emits an end event, so the route is added to the record now.
    else outer.say({ route: request.routeOptions.url })
    done()
  })
  server.addHook('preHandler', (request, _reply, done) => {
    // After the upgrade, the duration of the open connection is not the duration of a call.
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
