// Endpoint for a sandbox's use of processor, memory and disk. The runner measures this use, so the endpoint works for a paused
// sandbox.
import Type from 'typebox'
import { notStarted } from '#src/problems.ts'
import { route } from '../sandbox.ts'

const SystemMetrics = Type.Object({
  cpuCount: Type.Number(),
  cpuUsedPct: Type.Number(),
  memTotal: Type.Number(),
  memUsed: Type.Number(),
  memCache: Type.Number(),
  diskTotal: Type.Number(),
  diskUsed: Type.Optional(Type.Number()),
  diskFree: Type.Optional(Type.Number()),
  timestamp: Type.String({ format: 'date-time' }),
  timestampUnix: Type.Number(),
})

export const systemRoutes = [
  route({
    method: 'GET',
    path: '/system/metrics',
    needs: 'sandbox, also paused',
    summary: 'Returns the CPU, memory and disk usage of the sandbox, with the total of each.',
    replies: { 200: SystemMetrics },
    run: async ({ measure }) => {
      const reading = await measure()
      if (reading === undefined) throw notStarted('The sandbox was stopped or deleted before it was measured.')
      const { diskTotal, diskUsed } = reading
      const now = new Date()
      return {
        ...reading,
        ...(diskUsed === undefined ? {} : { diskFree: Math.max(0, diskTotal - diskUsed) }),
        timestamp: now.toISOString(),
        timestampUnix: Math.floor(now.getTime() / 1000),
      }
    },
  }),
]
