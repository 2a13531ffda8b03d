// Records each HTTP call that a program serves: as a span, and as a duration in a histogram. Paths and queries may contain
// credentials, so the record has only the route's pattern.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { type Attributes, beginSpan, duration, isFollowed, type TracePlace } from '#src/kit/telemetry/telemetry.ts'

const durations = duration(
  'http.server.request.duration',
  'Calls that were answered.',
  [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
)

const knownMethods = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'TRACE'])

type Outcome = {
  /** The path pattern of the route. Absent: the call matched no route. */
  route?: string | undefined
  /** The status of the answer. Absent: the caller disconnected before there was an answer. */
  status?: number | undefined
  /** The code of the problem, if the call was refused. */
  problem?: string | undefined
  attributes?: Attributes | undefined
}

export type FollowedCall = {
  /** Runs work. Spans (telemetry records of work) that begin in this work become children of the call's span. */
  during: <T>(work: () => T) => T
  /** Adds parts of the outcome before the call ends. A route or problem that is given here has priority over one given to `end`. */
  say: (known: Outcome) => void
  end: (outcome: Outcome) => void
}

const followed = new WeakMap<IncomingMessage, FollowedCall>()

/** Returns the record of a call, if another server of this process, such as the gate's, has begun it. */
export const findFollowed = (request: IncomingMessage): FollowedCall | undefined => followed.get(request)

/**
 * Reads from the headers of a call the position in the caller's trace. If the header `traceparent` comes twice, it is
 * ignored.
 */
const placeOf = ({ traceparent, tracestate }: IncomingHttpHeaders): TracePlace => ({
  traceparent: Array.isArray(traceparent) ? undefined : traceparent,
  tracestate: Array.isArray(tracestate) ? tracestate.join(',') : tracestate,
})

/** Begins the record of a call. Returns `undefined` if telemetry is off. `isCounted`: false if another program counts the call. */
export const followCall = (
  request: IncomingMessage,
  { isCounted = true }: { isCounted?: boolean } = {},
): FollowedCall | undefined => {
  if (!isFollowed()) return undefined
  const { method = 'GET', headers } = request
  const known = knownMethods.has(method) ? method : '_OTHER'
  const name = known === '_OTHER' ? 'HTTP' : known
  const begunAt = performance.now()
  const span = beginSpan(
    name,
    { kind: 'server', attributes: { 'http.request.method': known, 'url.scheme': 'http' } },
    placeOf(headers),
  )
  let isOver = false
  let said: Outcome = {}
  const call: FollowedCall = {
    during: (work) => (span === undefined ? work() : span.during(work)),
    say: (more) => {
      said = { ...said, ...more }
    },
    end: (outcome) => {
      if (isOver) return
      isOver = true
      const route = said.route ?? outcome.route
      const status = outcome.status ?? said.status
      const problem = said.problem ?? outcome.problem
      const attributes = { ...outcome.attributes, ...said.attributes }
      const shared = { 'http.route': route, 'http.response.status_code': status }
      if (span !== undefined) {
        if (route !== undefined) span.rename(`${name} ${route}`)
        span.set({ ...shared, ...attributes })
        // By OpenTelemetry's conventions, a span has not failed if the status is below 500.
        if (status === undefined || status >= 500) span.fail(problem ?? String(status ?? 'cancelled'))
        else if (problem !== undefined) span.set({ 'error.type': problem })
        span.end()
      }
      if (!isCounted) return
      durations.record((performance.now() - begunAt) / 1000, {
        'http.request.method': known,
        'url.scheme': 'http',
        ...shared,
        ...(status === undefined || status >= 500 ? { 'error.type': problem ?? String(status ?? 'cancelled') } : {}),
      })
    },
  }
  followed.set(request, call)
  return call
}
