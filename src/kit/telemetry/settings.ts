// The environment variables of OpenTelemetry that our programs read themselves. OpenTelemetry's exporters read others, such as
// those for headers and certificates. A wrong value has no effect and causes a warning, because OpenTelemetry's specification says
// so.

export const signals = ['traces', 'metrics', 'logs'] as const
export type Signal = (typeof signals)[number]
type Protocol = 'http/protobuf' | 'http/json'

export type Sampler = { isParentBased: boolean; ratio: number }

type Batching = {
  scheduledDelayMillis: number
  exportTimeoutMillis: number
  maxQueueSize: number
  maxExportBatchSize: number
}

export type TelemetrySettings = {
  serviceName: string
  /** The protocol of each kind of telemetry that is sent. A kind that is absent is not sent. */
  send: Partial<Record<Signal, Protocol>>
  /** True if a program continues the trace that a call's headers name. */
  propagates: boolean
  sampler: Sampler
  spans: Batching
  lines: Batching
  metricsEveryMs: number
  metricsTimeoutMs: number
  /** Maximum number of characters of an attribute's value. Longer values are cut. */
  longestValue: number
  warnings: readonly string[]
}

const samplers: Record<string, Omit<Sampler, 'ratio'> & { ratio: number | 'argument' }> = {
  always_on: { isParentBased: false, ratio: 1 },
  always_off: { isParentBased: false, ratio: 0 },
  traceidratio: { isParentBased: false, ratio: 'argument' },
  parentbased_always_on: { isParentBased: true, ratio: 1 },
  parentbased_always_off: { isParentBased: true, ratio: 0 },
  parentbased_traceidratio: { isParentBased: true, ratio: 'argument' },
}

const protocols: readonly string[] = ['http/protobuf', 'http/json'] satisfies Protocol[]

const mostQueued = 65_536
const longestTimer = 2 ** 31 - 1

export const readTelemetry = (environment: NodeJS.ProcessEnv, serviceName: string): TelemetrySettings => {
  const warnings: string[] = []
  const text = (name: string) => environment[name]?.trim() || undefined
  const word = (name: string) => text(name)?.toLowerCase()
  const ignored = (name: string, why: string) => void warnings.push(`${name} is ignored: ${why}`)

  const whole = (name: string, fallback: number, { least = 1, most = longestTimer } = {}): number => {
    const given = text(name)
    if (given === undefined) return fallback
    if (/^\d{1,10}$/.test(given) && Number(given) >= least && Number(given) <= most) return Number(given)
    ignored(name, `it must be a whole number from ${least} to ${most}`)
    return fallback
  }

  const ofSignal = (signal: Signal, what: string): string | undefined => {
    const own = `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_${what}`
    return text(own) === undefined ? `OTEL_EXPORTER_OTLP_${what}` : own
  }

  /** Returns the protocol for a kind of telemetry. Undefined: it is not sent. */
  const protocolOf = (signal: Signal): Protocol | undefined => {
    const exporterName = `OTEL_${signal.toUpperCase()}_EXPORTER`
    const endpointName = ofSignal(signal, 'ENDPOINT')!
    const [exporter, endpoint] = [word(exporterName), text(endpointName)]
    if (exporter === 'none' || (exporter === undefined && endpoint === undefined)) return undefined
    if (exporter !== undefined && exporter !== 'otlp') {
      ignored(exporterName, 'it must be otlp or none')
      return undefined
    }
    if (endpoint !== undefined && !(URL.canParse(endpoint) && /^https?:$/.test(new URL(endpoint).protocol))) {
      ignored(endpointName, 'it must be a URL that begins with https:// or http://')
      return undefined
    }
    const protocolName = ofSignal(signal, 'PROTOCOL')!
    const protocol = word(protocolName) ?? 'http/protobuf'
    if (protocols.includes(protocol)) return protocol as Protocol
    warnings.push(`${signal} are not sent: ${protocolName} must be http/protobuf or http/json`)
    return undefined
  }

  const readSampler = (): Sampler => {
    const name = word('OTEL_TRACES_SAMPLER')
    const found = samplers[name ?? 'parentbased_always_on']
    if (found === undefined) ignored('OTEL_TRACES_SAMPLER', `it must be one of ${Object.keys(samplers).join(', ')}`)
    const { isParentBased, ratio } = found ?? samplers['parentbased_always_on']!
    if (ratio !== 'argument') return { isParentBased, ratio }
    const argument = text('OTEL_TRACES_SAMPLER_ARG')
    if (argument === undefined) return { isParentBased, ratio: 1 }
    const given = Number(argument)
    if (given >= 0 && given <= 1) return { isParentBased, ratio: given }
    ignored('OTEL_TRACES_SAMPLER_ARG', 'it must be a number from 0 to 1')
    return { isParentBased, ratio: 1 }
  }

  const readPropagation = (): boolean => {
    const names = word('OTEL_PROPAGATORS')
      ?.split(',')
      .map((name) => name.trim())
    if (names === undefined) return true
    const unknown = names.filter((name) => !['tracecontext', 'baggage', 'none'].includes(name))
    if (unknown.length > 0) ignored('OTEL_PROPAGATORS', 'of its words only tracecontext and none are understood')
    return names.includes('tracecontext')
  }

  const batching = (prefix: string, scheduledDelayMillis: number): Batching => {
    const maxQueueSize = whole(`${prefix}_MAX_QUEUE_SIZE`, 2048, { most: mostQueued })
    return {
      scheduledDelayMillis: whole(`${prefix}_SCHEDULE_DELAY`, scheduledDelayMillis),
      exportTimeoutMillis: whole(`${prefix}_EXPORT_TIMEOUT`, 30_000),
      maxQueueSize,
      maxExportBatchSize: Math.min(whole(`${prefix}_MAX_EXPORT_BATCH_SIZE`, 512, { most: mostQueued }), maxQueueSize),
    }
  }

  const metricsEveryMs = whole('OTEL_METRIC_EXPORT_INTERVAL', 60_000)
  const isDisabled = word('OTEL_SDK_DISABLED') === 'true'
  const settings = {
    serviceName: text('OTEL_SERVICE_NAME') ?? serviceName,
    send: isDisabled
      ? {}
      : Object.fromEntries(
          signals.flatMap((signal) => {
            const protocol = protocolOf(signal)
            return protocol === undefined ? [] : [[signal, protocol] as const]
          }),
        ),
    propagates: readPropagation(),
    sampler: readSampler(),
    spans: batching('OTEL_BSP', 5_000),
    lines: batching('OTEL_BLRP', 1_000),
    metricsEveryMs,
    metricsTimeoutMs: Math.min(whole('OTEL_METRIC_EXPORT_TIMEOUT', 30_000), metricsEveryMs),
    longestValue: whole('OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT', 4096, { most: 65_536 }),
  }
  return { ...settings, warnings: isDisabled ? [] : warnings }
}
