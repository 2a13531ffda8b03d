// The endpoint `/metrics`, for Prometheus.
import Type from 'typebox'
import { type ControlRoute, route } from '../auth/route.ts'
import type { Metrics } from './metrics.ts'

export const metricsRoutes = ({ metrics }: { metrics: Metrics }): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/metrics',
    needs: 'admin',
    summary: 'Returns the server’s metrics for the operator, in the text format of Prometheus.',
    replies: { 200: Type.String() },
    run: async ({ reply }) => {
      reply.type(metrics.contentType)
      return await metrics.print()
    },
  }),
]
