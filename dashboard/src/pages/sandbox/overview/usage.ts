// Turns measurements of a sandbox's usage into curves, and into sentences that describe the curves.
import type { AnswerTo } from '../../../api/client.ts'
import { sizeText } from '../../../ui/size-text.ts'

export type Series = AnswerTo<'/sandbox/{sandboxIdOrName}/telemetry/metrics', 'get'>['series']

/** The points of one curve for the library uPlot. `times` are in seconds since 1970. A null makes a gap in the curve. */
export type Curve = { times: number[]; used: (number | null)[]; limit: (number | null)[] }

const gib = 1024 ** 3

/** Returns a number as text, with about three significant digits. */
export const shortNumber = (value: number): string => {
  if (value >= 100) return String(Math.round(value))
  return String(Number(value.toPrecision(value < 10 ? 2 : 3)))
}

const percentText = (value: number) => `${value < 0.1 ? 0 : shortNumber(value)} %`

/** A size in GiB as a text. */
const gibText = (size: number): string => sizeText(size * gib)

export const quantities = [
  { name: 'Processors', used: 'daytona.sandbox.cpu.utilization', limit: undefined, divisor: 1, text: percentText },
  {
    name: 'Memory',
    used: 'daytona.sandbox.memory.usage',
    limit: 'daytona.sandbox.memory.limit',
    divisor: gib,
    text: gibText,
  },
  {
    name: 'Disk',
    used: 'daytona.sandbox.filesystem.usage',
    limit: 'daytona.sandbox.filesystem.total',
    divisor: gib,
    text: gibText,
  },
] as const

export type Quantity = (typeof quantities)[number]

/** The names of all series that are drawn. */
export const metricNames = quantities.flatMap(({ used, limit }) => (limit === undefined ? [used] : [used, limit]))

/**
 * Measurements further apart than this, in seconds, have a gap between them: usually the sandbox did not run. An idle sandbox is
 * measured every five minutes.
 */
const longestGap = 13 * 60

/** The curve of one quantity, such as the used memory. The curve has a gap wherever the quantity was not measured. */
export const curveOf = (series: Series, { used, limit, divisor }: Quantity): Curve => {
  const pointsOf = (name: string | undefined) => series.find(({ metricName }) => metricName === name)?.dataPoints ?? []
  const limits = new Map(pointsOf(limit).map(({ timestamp, value }) => [timestamp, value / divisor]))
  const curve: Curve = { times: [], used: [], limit: [] }
  const add = (time: number, usedThen: number | null, limitThen: number | null) => {
    curve.times.push(time)
    curve.used.push(usedThen)
    curve.limit.push(limitThen)
  }
  for (const { timestamp, value } of pointsOf(used)) {
    const time = Date.parse(timestamp) / 1000
    const last = curve.times.at(-1)
    if (last !== undefined && time <= last) continue
    if (last !== undefined && time - last > longestGap) add(last + 1, null, null)
    add(time, value / divisor, limits.get(timestamp) ?? null)
  }
  return curve
}

/** Describes a curve in a sentence. Undefined for a curve without points. */
export const summaryOf = ({ text, limit: hasLimit }: Quantity, { used, limit }: Curve): string | undefined => {
  const values = used.filter((value) => value !== null)
  const last = values.at(-1)
  if (last === undefined) return undefined
  const lastLimit = limit.findLast((value) => value !== null)
  const of = hasLimit !== undefined && typeof lastLimit === 'number' ? ` of ${text(lastLimit)}` : ''
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  return `Last ${text(last)}${of}, at most ${text(Math.max(...values))}, ${text(mean)} on average`
}
