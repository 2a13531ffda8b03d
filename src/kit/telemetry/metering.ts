// Records measurements with the meter of OpenTelemetry.
import type { Meter } from '@opentelemetry/api'
import type { AdoptedMetrics } from './printed-metrics.ts'
import type { Attributes, Metering } from './telemetry.ts'

const given = (attributes: Attributes) =>
  Object.fromEntries(
    Object.entries(attributes).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )

/**
 * Measures CPU time, memory and more of this process. The metrics have the names that OpenTelemetry's conventions
 * define.
 */
const observeProcess = (metering: Metering) => {
  const sum = (name: string, unit: string, description: string, read: Parameters<Metering['observe']>[1]) =>
    metering.observe({ name, unit, description, isSum: true }, read)
  sum('process.cpu.time', 's', 'CPU seconds by mode.', () => {
    const { user, system } = process.cpuUsage()
    return [
      [user / 1e6, { 'cpu.mode': 'user' }],
      [system / 1e6, { 'cpu.mode': 'system' }],
    ]
  })
  metering.observe({ name: 'process.memory.usage', unit: 'By', description: 'Resident memory.' }, () => [
    [process.memoryUsage.rss(), {}],
  ])
  let last = performance.eventLoopUtilization()
  metering.observe(
    { name: 'nodejs.eventloop.utilization', unit: '1', description: 'Share of time that the event loop was busy.' },
    () => {
      const now = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(now, last)
      last = now
      return [[utilization, {}]]
    },
  )
}

export const createMetering = (meter: Meter, adopted: AdoptedMetrics): Metering => {
  const metering: Metering = {
    recorder: ({ name, unit, description }, buckets) => {
      const histogram = meter.createHistogram(name, {
        unit,
        description,
        advice: { explicitBucketBoundaries: [...buckets] },
      })
      return (value, attributes) => histogram.record(value, given(attributes))
    },
    observe: ({ name, unit, description, isSum = false }, read) => {
      const options = { unit, description }
      const instrument = isSum
        ? meter.createObservableCounter(name, options)
        : meter.createObservableGauge(name, options)
      instrument.addCallback((result) => {
        for (const [value, attributes] of read()) result.observe(value, given(attributes))
      })
    },
    adopt: (source) => adopted.add(source),
  }
  observeProcess(metering)
  return metering
}
