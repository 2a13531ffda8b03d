// Samples of what sandboxes use: stored as runners report them, shown as series of points, deleted after some hours.
import type { Parts } from '#src/control/parts.ts'
import { getSandbox } from '#src/control/sandboxes/service.ts'
import { Problem } from '#src/problems.ts'
import type { MeterSample } from '#src/wire/meter-reading.ts'
import type { MetricsResponse, SeriesQuery } from './schemas.ts'
import { deleteSamples, insertSamples, listMeans, type MeterRow } from './store.ts'

type MeterParts = Pick<Parts, 'database' | 'clock' | 'settings'>

/** For each metric name that clients expect: the field of a sample that contains the value. */
const series = {
  'daytona.sandbox.cpu.limit': 'cpuCount',
  'daytona.sandbox.cpu.utilization': 'cpuUsedPct',
  'daytona.sandbox.memory.limit': 'memTotal',
  'daytona.sandbox.memory.usage': 'memUsed',
  'daytona.sandbox.memory.cache': 'memCache',
  'daytona.sandbox.filesystem.total': 'diskTotal',
  'daytona.sandbox.filesystem.usage': 'diskUsed',
} as const satisfies Record<string, Exclude<keyof MeterRow, 'at'>>

/** Maximum number of points per series. If there are more samples, each point is the mean of several samples. */
const mostPoints = 1000
const rowsPerSweep = 50_000

const keptSince = ({ clock, settings }: MeterParts) => new Date(clock.now().getTime() - settings.meterHours * 3_600_000)

/**
 * Stores samples that a runner reports. The time of a sample is the time of its arrival, because the clock of a runner may be
 * wrong.
 */
export const keepSamples = async (
  { database, clock }: MeterParts,
  runnerId: string,
  samples: readonly MeterSample[],
): Promise<void> => {
  if (samples.length > 0) await insertSamples(database.sql, runnerId, samples, clock.now())
}

const pointsOf = (rows: readonly MeterRow[], column: (typeof series)[keyof typeof series]) =>
  rows.flatMap((row) => {
    const value = row[column]
    return value === null ? [] : [{ timestamp: row.at.toISOString(), value: Math.round(value * 1000) / 1000 }]
  })

export const listSeries = async (
  parts: MeterParts,
  organizationId: string,
  idOrName: string,
  { from: wantedFrom, to: wantedTo, metricNames }: SeriesQuery,
): Promise<MetricsResponse> => {
  const { sql } = parts.database
  const { id, created_at } = await getSandbox(sql, organizationId, idOrName)
  const to = wantedTo === undefined ? parts.clock.now() : new Date(wantedTo)
  const asked = wantedFrom === undefined ? created_at : new Date(wantedFrom)
  if (asked > to) throw new Problem('bad_request', 'query.from must not be after query.to')
  // `created_at` is the time of the claim if the sandbox was warm. So its owner does not see samples from before the
  // claim.
  const from = new Date(Math.max(asked.getTime(), created_at.getTime(), keptSince(parts).getTime()))
  const seconds = Math.max(1, Math.ceil((to.getTime() - from.getTime() + 1) / 1000 / mostPoints))
  const rows = from > to ? [] : await listMeans(sql, id, { from, to, seconds })
  const wanted = Object.entries(series).filter(([name]) => !metricNames?.length || metricNames.includes(name))
  return { series: wanted.map(([metricName, column]) => ({ metricName, dataPoints: pointsOf(rows, column) })) }
}

export const sweepMeters = async (parts: MeterParts): Promise<void> => {
  await deleteSamples(parts.database.sql, keptSince(parts), rowsPerSweep)
}
