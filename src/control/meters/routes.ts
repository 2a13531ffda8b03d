// The endpoint `/sandbox/{sandboxIdOrName}/telemetry/metrics`.
import { type ControlRoute, route } from '#src/control/auth/route.ts'
import type { Parts } from '#src/control/parts.ts'
import { ByIdOrName } from '#src/control/sandboxes/record/schemas.ts'
import { MetricsResponse, SeriesQuery } from './schemas.ts'
import { listSeries } from './service.ts'

export const meterRoutes = (parts: Pick<Parts, 'database' | 'clock' | 'settings'>): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/sandbox/:sandboxIdOrName/telemetry/metrics',
    needs: 'member',
    summary: 'Returns a sandbox’s CPU, memory and disk usage over time, with at most 1000 points per metric.',
    params: ByIdOrName,
    query: SeriesQuery,
    replies: { 200: MetricsResponse },
    run: ({ organization, params, query }) => listSeries(parts, organization.id, params.sandboxIdOrName, query),
  }),
]
