// Records each call of a server for telemetry. A call may come through another server of this process, such as the gate's. Then
// that server has begun the record, and this server only adds to it.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Attributes, isFollowed } from '#src/kit/telemetry/telemetry.ts'
import type { Problem } from '#src/problems.ts'
import { type FollowedCall, findFollowed, followCall } from './followed-call.ts'

const calls = new WeakMap<FastifyRequest, FollowedCall>()
/**
 * Calls whose telemetry record this server has begun, so it must end the record. Other records are ended by the server that began
 * them, such as the gate's.
 */
const followedHere = new WeakSet<FastifyRequest>()

/** Runs `work` in the trace of the call. Code that runs after the body was read needs this, because Node then forgets the trace. */
export const inCall = <T>(request: FastifyRequest, work: () => T): T => {
  const call = calls.get(request)
  return call === undefined ? work() : call.during(work)
}

type FollowOptions = {
  /** Returns the problem with which the server refused the call. Undefined: it was not refused. */
  problemOf: (request: FastifyRequest) => Problem | undefined
  /** Returns attributes that are added to the telemetry record of the call. */
  tell: (request: FastifyRequest) => Attributes
}

/** Adds hooks that record the calls of a server, if telemetry is on. Must be called before any other hook is added. */
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
    // If an upgrade is refused, Fastify emits no event at the end of the call. So the call's telemetry gets the route here.
    else outer.say({ route: request.routeOptions.url })
    done()
  })
  server.addHook('preHandler', (request, _reply, done) => {
    // The call ends with the upgrade. The time for which the WebSocket then stays open is not the duration of a call.
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
