// Converts metrics of the library prom-client to the form of OpenTelemetry, so that the code defines each metric once.
import { type HrTime, ValueType } from '@opentelemetry/api'
import { hrTime, type InstrumentationScope, millisToHrTime } from '@opentelemetry/core'
import { emptyResource } from '@opentelemetry/resources'
import {
  AggregationTemporality,
  type CollectionResult,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics'
import type { MetricSource, PrintedMetric } from './telemetry.ts'

type Labels = Record<string, string>

const textOf = (labels: Readonly<Record<string, unknown>>, without?: string): Labels =>
  Object.fromEntries(
    Object.entries(labels).flatMap(([name, value]) => (name === without ? [] : [[name, String(value)]])),
  )

/** Returns the unit of a metric (UCUM), which prom-client has only as a part of the metric's name. */
const unitOf = (name: string): string =>
  /_seconds(?:_total)?$/.test(name) ? 's' : /_bytes(?:_total)?$/.test(name) ? 'By' : ''

/**
 * Converts histograms. A bucket of Prometheus counts all smaller values too; a bucket of OpenTelemetry counts only
 * values of its own range.
 */
const histogramsOf = ({ name, values }: PrintedMetric, times: Times): DataPoint<Histogram>[] => {
  type Series = { labels: Labels; sum: number; count: number; buckets: [boundary: number, upTo: number][] }
  const all = new Map<string, Series>()
  for (const { value, labels, metricName } of values) {
    const own = textOf(labels, 'le')
    const key = JSON.stringify(own)
    const series = all.get(key) ?? { labels: own, sum: 0, count: 0, buckets: [] }
    all.set(key, series)
    if (metricName === `${name}_sum`) series.sum = value
    else if (metricName === `${name}_count`) series.count = value
    else if (labels['le'] !== '+Inf') series.buckets.push([Number(labels['le']), value])
  }
  return [...all.values()].map(({ labels, sum, count, buckets }) => {
    const sorted = buckets.sort(([one], [other]) => one - other)
    const upTo = [...sorted.map(([, value]) => value), count]
    return {
      ...times,
      attributes: labels,
      value: {
        buckets: {
          boundaries: sorted.map(([boundary]) => boundary),
          counts: upTo.map((value, at) => value - (upTo[at - 1] ?? 0)),
        },
        sum,
        count,
      },
    }
  })
}

type Times = { startTime: HrTime; endTime: HrTime }

const metricOf = (printed: PrintedMetric, times: Times): MetricData[] => {
  const { name, help, type, values } = printed
  const descriptor = { name, description: help, unit: unitOf(name), valueType: ValueType.DOUBLE }
  const shared = { descriptor, aggregationTemporality: AggregationTemporality.CUMULATIVE }
  if (type === 'histogram') {
    return [{ ...shared, dataPointType: DataPointType.HISTOGRAM, dataPoints: histogramsOf(printed, times) }]
  }
  const dataPoints = values.flatMap(({ value, labels }) =>
    Number.isFinite(value) ? [{ ...times, attributes: textOf(labels), value }] : [],
  )
  if (type === 'counter') return [{ ...shared, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }]
  if (type === 'gauge') return [{ ...shared, dataPointType: DataPointType.GAUGE, dataPoints }]
  return []
}

export class AdoptedMetrics implements MetricProducer {
  readonly #scope: InstrumentationScope
  readonly #sources: MetricSource[] = []
  readonly #startTime = millisToHrTime(Date.now())

  constructor(name: string) {
    this.#scope = { name }
  }

  add(source: MetricSource): void {
    this.#sources.push(source)
  }

  async collect(): Promise<CollectionResult> {
    const read = await Promise.allSettled(this.#sources.map((source) => source()))
    const times = { startTime: this.#startTime, endTime: hrTime() }
    const metrics = read.flatMap((outcome) =>
      outcome.status === 'fulfilled' ? outcome.value.flatMap((printed) => metricOf(printed, times)) : [],
    )
    return {
      resourceMetrics: { resource: emptyResource(), scopeMetrics: [{ scope: this.#scope, metrics }] },
      errors: read.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : [])),
    }
  }
}
