// The schemas of usage samples, in reports of runners and in replies to callers.
import Type, { type Static } from 'typebox'
import { DateTime } from '#src/http/shapes.ts'
import { mostSamples } from '#src/wire/meter-reading.ts'

export const SeriesQuery = Type.Object({
  from: Type.Optional(DateTime),
  to: Type.Optional(DateTime),
  metricNames: Type.Optional(Type.Array(Type.String({ maxLength: 255 }), { maxItems: 100 })),
})
export type SeriesQuery = Static<typeof SeriesQuery>

export const MetricsResponse = Type.Object({
  series: Type.Array(
    Type.Object({
      metricName: Type.String(),
      dataPoints: Type.Array(Type.Object({ timestamp: DateTime, value: Type.Number() })),
    }),
  ),
})
export type MetricsResponse = Static<typeof MetricsResponse>

const amount = Type.Number({ minimum: 0, maximum: 1e18 })

export const MeterSamples = Type.Array(
  Type.Object({
    sandboxId: Type.String({ maxLength: 255 }),
    cpuCount: amount,
    cpuUsedPct: amount,
    memTotal: amount,
    memUsed: amount,
    memCache: amount,
    diskTotal: amount,
    diskUsed: Type.Optional(amount),
  }),
  { maxItems: mostSamples },
)
