// Puts together the parts of OpenTelemetry's SDK that Alcove uses. With a slow or failing receiver, data is dropped, but no
// program is delayed.
import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { DiagLogLevel, diag } from '@opentelemetry/api'
import { setGlobalErrorHandler } from '@opentelemetry/core'
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from '@opentelemetry/resources'
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import type { Logger } from '#src/kit/log.ts'
import { version } from '#src/kit/version.ts'
import { type Exporters, openExporters } from './exporters.ts'
import { takeLinesInto } from './lines.ts'
import { createMetering } from './metering.ts'
import type { OpenTelemetry } from './open.ts'
import { AdoptedMetrics } from './printed-metrics.ts'
import type { TelemetrySettings } from './settings.ts'
import { setTelemetry } from './telemetry.ts'
import { createTracing, samplerOf } from './tracing.ts'

/** Milliseconds for sending queued telemetry when the program ends. A program has only three seconds for all its work then. */
const flushMs = 750

const scope = 'alcove'

const resourceOf = ({ serviceName }: TelemetrySettings): Resource =>
  defaultResource()
    .merge(resourceFromAttributes({ 'service.version': version, 'host.name': hostname() }))
    .merge(detectResources({ detectors: [serviceInstanceIdDetector, envDetector] }))
    .merge(resourceFromAttributes({ 'service.name': serviceName }))

const openTraces = (settings: TelemetrySettings, exporter: Exporters['traces'], resource: Resource) => {
  if (exporter === undefined) return undefined
  return new TracerProvider({
    resource,
    sampler: samplerOf(settings.sampler),
    spanLimits: { attributeValueLengthLimit: settings.longestValue },
    spanProcessors: [new BatchSpanProcessor({ exporter, ...settings.spans })],
  })
}

const openMetrics = (settings: TelemetrySettings, exporter: Exporters['metrics'], resource: Resource) => {
  if (exporter === undefined) return undefined
  const adopted = new AdoptedMetrics(scope)
  const reader = new PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: settings.metricsEveryMs,
    exportTimeoutMillis: settings.metricsTimeoutMs,
    metricProducers: [adopted],
  })
  const provider = new MeterProvider({ resource, readers: [reader] })
  return { provider, metering: createMetering(provider.getMeter(scope, version), adopted) }
}

const openLines = (settings: TelemetrySettings, exporter: Exporters['logs'], resource: Resource) => {
  if (exporter === undefined) return undefined
  return new LoggerProvider({
    resource,
    logRecordLimits: { attributeValueLengthLimit: settings.longestValue },
    processors: [new BatchLogRecordProcessor({ exporter, ...settings.lines })],
  })
}

/** Logs messages of OpenTelemetry's packages. Messages at the start are about settings. Later messages are about failed exports. */
const hearPackages = (log: Logger) => {
  const say = { warn: (text: string) => log.warn(text), later: (text: string) => log.debug(text) }
  let word: keyof typeof say = 'warn'
  const hear = (text: string) => say[word](`opentelemetry: ${text}`)
  diag.setLogger(
    { error: hear, warn: hear, info: () => {}, debug: () => {}, verbose: () => {} },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
  setGlobalErrorHandler((error) => log.debug({ err: error }, 'telemetry could not be sent'))
  return () => {
    word = 'later'
  }
}

export const startSdk = async (settings: TelemetrySettings, log: Logger): Promise<OpenTelemetry> => {
  const isSetUp = hearPackages(log)
  const exporters = await openExporters(settings.send, log)
  const resource = resourceOf(settings)
  const traces = openTraces(settings, exporters.traces, resource)
  const metrics = openMetrics(settings, exporters.metrics, resource)
  const lines = openLines(settings, exporters.logs, resource)
  isSetUp()
  setTelemetry({
    tracing: traces && createTracing(traces.getTracer(scope, version), { propagates: settings.propagates }),
    metering: metrics?.metering,
    takeLine: lines && takeLinesInto(lines.getLogger(scope, version)),
  })
  log.info({ signals: Object.keys(settings.send) }, 'telemetry is sent')
  return {
    close: async () => {
      const flushing = [traces, metrics?.provider, lines].map((provider) => provider?.shutdown())
      await Promise.race([Promise.allSettled(flushing), pause(flushMs, undefined, { ref: false })])
      setTelemetry({})
    },
  }
}
