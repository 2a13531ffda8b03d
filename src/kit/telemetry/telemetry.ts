// Spans and measurements of a program. Until open.ts opens telemetry, each function here only checks one variable, and no
// package of OpenTelemetry is loaded.

/** Attributes leave this machine: they must never hold a credential, a token or the output of a user's program. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

/** A place in a trace, in the form of headers and messages (W3C Trace Context). */
export type TracePlace = { traceparent?: string | undefined; tracestate?: string | undefined }

export type Kind = 'internal' | 'server' | 'client' | 'consumer'

/** A piece of work in progress, to which attributes can be added. */
export type Span = {
  set: (attributes: Attributes) => void
  /** Marks the work as failed. `type` is a word such as the code of an error, and never its message. */
  fail: (type: string) => void
}

/** A span that its caller must end by `end`. */
export type OpenSpan = Span & {
  rename: (name: string) => void
  /** Runs work whose spans are children of this span. */
  during: <T>(work: () => T) => T
  end: () => void
}

type SpanOptions = { kind?: Kind; attributes?: Attributes }

export type Tracing = {
  begin: (name: string, options: SpanOptions, place?: TracePlace) => OpenSpan
  below: <T>(place: TracePlace, work: () => T) => T
  /** The current place in the trace; empty outside a trace. */
  place: () => TracePlace
  /** Trace id and span id of the current span, for log lines. */
  ids: () => { trace_id: string; span_id: string } | undefined
}

type Instrument = { name: string; unit: string; description: string }
type Measurement = readonly [value: number, attributes: Attributes]

export type Metering = {
  recorder: (instrument: Instrument, buckets: readonly number[]) => (value: number, attributes: Attributes) => void
  observe: (instrument: Instrument & { isSum?: boolean }, read: () => readonly Measurement[]) => void
  /** Adds metrics that another library keeps. Telemetry reads them at every export. */
  adopt: (source: MetricSource) => void
}

/** A metric in the JSON of prom-client. Telemetry knows prom-client only by this type. */
export type PrintedMetric = {
  name: string
  help: string
  type: unknown
  values: readonly { value: number; labels: Readonly<Record<string, unknown>>; metricName?: string }[]
}
export type MetricSource = () => Promise<readonly PrintedMetric[]>

type Telemetry = {
  tracing?: Tracing | undefined
  metering?: Metering | undefined
  /** Receives each line of the log at the moment when it is written. */
  takeLine?: ((line: string) => void) | undefined
}

let open: Telemetry = {}

/** Sets the telemetry of this program. Only open.ts and tests call this. */
export const setTelemetry = (telemetry: Telemetry): void => {
  open = telemetry
}

/** True if calls are traced or measured. */
export const isFollowed = (): boolean => open.tracing !== undefined || open.metering !== undefined

const errorType = (error: unknown): string => {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  return typeof code === 'string' && /^\w{1,64}$/.test(code) ? code : typeof name === 'string' ? name : 'error'
}

const nothing: Span = { set: () => {}, fail: () => {} }

/** Runs work inside a span. The span records the duration of the work and whether it threw. */
export const span = <T>(name: string, options: SpanOptions, work: (span: Span) => Promise<T>): Promise<T> => {
  const { tracing } = open
  if (tracing === undefined) return work(nothing)
  const begun = tracing.begin(name, options)
  return begun.during(async () => {
    try {
      return await work(begun)
    } catch (error) {
      begun.fail(errorType(error))
      throw error
    } finally {
      begun.end()
    }
  })
}

/** Begins a span that the caller must end. An absent or invalid `place` begins a new trace. */
export const beginSpan = (name: string, options: SpanOptions, place?: TracePlace): OpenSpan | undefined =>
  open.tracing?.begin(name, options, place)

/** Runs work whose spans belong to the trace of another program. */
export const belowPlace = <T>(place: TracePlace, work: () => T): T =>
  open.tracing === undefined ? work() : open.tracing.below(place, work)

/** The current place in the trace, for the headers of a call or for a message to another program. */
export const placeNow = (): TracePlace => open.tracing?.place() ?? {}

/** The current place in the trace, as a plain record of headers. */
export const placeHeaders = (): Record<string, string> => placeNow() as Record<string, string>

/** The fields that every log line gets while there is a current trace. */
export const traceIds = (): Record<string, string> => open.tracing?.ids() ?? {}

export const takeLine = (line: string): void => open.takeLine?.(line)

/** Makes a histogram of durations in seconds, to which values can be added. */
export const duration = (name: string, description: string, buckets: readonly number[]) => {
  let known: { metering: Metering; record: ReturnType<Metering['recorder']> } | undefined
  return {
    record: (seconds: number, attributes: Attributes): void => {
      const { metering } = open
      if (metering === undefined) return
      if (known?.metering !== metering) {
        known = { metering, record: metering.recorder({ name, unit: 's', description }, buckets) }
      }
      known.record(seconds, attributes)
    },
  }
}

/** Adds a value that is read at every export. */
export const observe: Metering['observe'] = (instrument, read) => open.metering?.observe(instrument, read)

export const adoptMetrics: Metering['adopt'] = (source) => open.metering?.adopt(source)
