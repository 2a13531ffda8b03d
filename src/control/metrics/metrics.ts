// The metrics of this process, and of the whole server. The metrics of the server are read from the database when Prometheus asks.
import type { FastifyInstance } from 'fastify'
import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client'
import type { Parts } from '#src/control/parts.ts'
import type { Change, ChangeFeed } from '#src/control/sandboxes/record/changes.ts'
import { isClaim, moves, stateRows } from '#src/control/sandboxes/record/lifecycle.ts'
import { adoptMetrics } from '#src/kit/telemetry/telemetry.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import { registerGauges } from './gauges.ts'

/** Milliseconds for which control reuses the values that were read from the database. */
const freshMilliseconds = 5_000

const requestBuckets = [0.005, 0.02, 0.05, 0.1, 0.25, 1, 5, 30]
/**
 * Upper bounds of histogram buckets, in seconds. The claim of a warm sandbox is short. A sandbox may stay in one state for a
 * month.
 */
const stateBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 1800, 7200, 86_400, 2_592_000]

export type Metrics = {
  contentType: string
  /** Returns all metrics in the text format of Prometheus. */
  print: () => Promise<string>
  /** Begins to count the requests that a server answers. Call this before the server listens. */
  follow: (server: FastifyInstance) => void
  /**
   * Adds metrics of this process (memory, event loop, garbage collection), and starts to export all metrics as
   * telemetry. Call this once per process.
   */
  includeProcess: () => void
  close: () => void
}

/**
 * Returns the first verb during which a sandbox has this state, for example `start` for `starting`. `none` if there is no such
 * verb.
 */
const verbOf = (state: SandboxState): string => moves.find(([, , through]) => through === state)?.[0] ?? 'none'

/** Returns how a caller's new sandbox was made: `warm`, `build`, `fork` or `cold`. Undefined for other changes. */
const sourceOf = ({ from, to, row }: Change): string | undefined => {
  if (row === undefined || row.warm_pool_id !== null) return undefined
  if (isClaim(from, to)) return 'warm'
  if (from !== null) return undefined
  return to === 'pending_build' ? 'build' : to === 'forking' ? 'fork' : 'cold'
}

export const createMetrics = ({ database, clock }: Pick<Parts, 'database' | 'clock'>, changes: ChangeFeed): Metrics => {
  const registry = new Registry()
  const refresh = registerGauges(registry)
  const requests = new Histogram({
    name: 'alcove_http_request_seconds',
    help: 'Answered requests of the API, by row of docs/reference/endpoints.md.',
    labelNames: ['method', 'route', 'status'],
    buckets: requestBuckets,
    registers: [registry],
  })
  const states = new Histogram({
    name: 'alcove_sandbox_state_seconds',
    help: 'How long sandboxes were in a state before they left it. For a step of a verb: also the verb, and how the step ended.',
    labelNames: ['state', 'verb', 'ended'],
    buckets: stateBuckets,
    registers: [registry],
  })
  const creates = new Counter({
    name: 'alcove_sandbox_creates_total',
    help: 'Sandboxes given to callers: claimed from a warm pool, made cold, waiting for a build, or forked.',
    labelNames: ['source'],
    registers: [registry],
  })

  const stopHearing = changes.hear((change) => {
    const { from, to, row } = change
    // A change without a row was made by another control process, which counts the change itself.
    if (row === undefined) return
    const source = sourceOf(change)
    if (source !== undefined) creates.inc({ source })
    if (from === null || row.previous_state_changed_at === undefined) return
    const seconds = (row.state_changed_at.getTime() - row.previous_state_changed_at.getTime()) / 1000
    const isStep = !stateRows[from].settled
    const isFailure = to === 'error' || to === 'build_failed'
    const ended = isFailure ? 'failed' : isStep && to === 'destroying' ? 'cancelled' : 'done'
    states.observe({ state: from, verb: isStep ? verbOf(from) : 'none', ended }, Math.max(0, seconds))
  })

  let asked: { at: number; done: Promise<void> } | undefined
  const ensureFresh = async () => {
    const at = performance.now()
    if (asked === undefined || at - asked.at > freshMilliseconds) {
      const asking = { at, done: refresh(database.sql, clock.now()) }
      asked = asking
      // If reading from the database fails, the next request for metrics reads again.
      asking.done.catch(() => {
        if (asked === asking) asked = undefined
      })
    }
    await asked.done
  }

  return {
    contentType: registry.contentType,
    print: async () => {
      await ensureFresh()
      return await registry.metrics()
    },
    follow: (server) => {
      server.addHook('onResponse', (request, reply, done) => {
        // WebSockets are not timed, because they may stay open for any time. Requests for unknown paths are not counted: each path
        // would become a label, and callers can invent any number of paths.
        const { url } = request.routeOptions
        if (!request.ws && url !== undefined) {
          const route = url.replace(/^\/api(?=\/)/, '')
          const status = `${Math.floor(reply.statusCode / 100)}xx`
          requests.observe({ method: request.method, route, status }, reply.elapsedTime / 1000)
        }
        done()
      })
    },
    includeProcess: () => {
      collectDefaultMetrics({ register: registry, prefix: 'alcove_control_' })
      adoptMetrics(async () => {
        await ensureFresh()
        return await registry.getMetricsAsJSON()
      })
    },
    close: stopHearing,
  }
}
