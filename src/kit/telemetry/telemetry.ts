// Functions that record spans and measurements. Without telemetry, each function only checks a variable.

/** Attributes leave this machine. They must never contain a credential, a token or output of a user's program. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

/** A position in a trace, as headers and messages carry it (W3C Trace Context). */
export type TracePlace = { traceparent?: string | undefined; tracestate?: string | undefined }

export type Kind = 'internal' | 'server' | 'client' | 'consumer'

/** Work that is in progress and is recorded. Attributes can be added to the record. */
export type Span = {
  set: (attributes: Attributes) => void
  /** Marks the work as failed. `type`: a word such as an error code, never a message, which may contain data of users. */
  fail: (type: string) => void
}

/** A span that stays open until its caller calls `end`. */
export type OpenSpan = Span & {
  rename: (name: string) => void
  /** Runs work. Spans (telemetry records of work) that begin in this work become children of this span. */
  during: <T>(work: () => T) => T
  end: () => void
}

type SpanOptions = { kind?: Kind; attributes?: Attributes }

export type Tracing = {
  begin: (name: string, options: SpanOptions, place?: TracePlace) => OpenSpan
  below: <T>(place: TracePlace, work: () => T) => T
  /** The current position in a trace. Empty if there is no current trace. */
  place: () => TracePlace
  /** Trace id and span id of the current span, for log lines. */
  ids: () => { trace_id: string; span_id: string } | undefined
}

type Instrument = { name: string; unit: string; description: string }
type Measurement = readonly [value: number, attributes: Attributes]

export type Metering = {
  recorder: (instrument: Instrument, buckets: readonly number[]) => (value: number, attributes: Attributes) => void
  observe: (instrument: Instrument & { isSum?: boolean }, read: () => readonly Measurement[]) => void
  /** Adds metrics that the library prom-client counts. They are read and sent at each export. */
  adopt: (source: MetricSource) => void
}

/** A metric of the library prom-client in JSON. With this type, the code of telemetry need not import prom-client. */
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
  /** Called with the text of each log line when the line is written. */
  takeLine?: ((line: string) => void) | undefined
}

let open: Telemetry = {}

/** Sets the functions that record telemetry for this program. Only open.ts and tests call this. */
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

/** Runs work and records it as a span: how long the work took, and whether it threw an error. */
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

/**
 * Begins a span that the caller must end. The span continues the trace at `place`. Without a valid place, the span begins a new
 * trace.
 */
export const beginSpan = (name: string, options: SpanOptions, place?: TracePlace): OpenSpan | undefined =>
  open.tracing?.begin(name, options, place)

/** Runs work that belongs to the trace of another program. `place`: the position in that trace. */
export const belowPlace = <T>(place: TracePlace, work: () => T): T =>
  open.tracing === undefined ? work() : open.tracing.below(place, work)

/** Returns the current position in the trace, which a call or a message to another program carries. */
export const placeNow = (): TracePlace => open.tracing?.place() ?? {}

/** Returns the current position in the trace as headers. */
export const placeHeaders = (): Record<string, string> => placeNow() as Record<string, string>

/** Returns the fields that every log line gets while there is a current trace. */
export const traceIds = (): Record<string, string> => open.tracing?.ids() ?? {}

export const takeLine = (line: string): void => open.takeLine?.(line)

/** Makes a histogram of durations in seconds. The caller adds values to it. */
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

/** Adds a metric whose value is read from `read` at each export. */
export const observe: Metering['observe'] = (instrument, read) => open.metering?.observe(instrument, read)

export const adoptMetrics: Metering['adopt'] = (source) => open.metering?.adopt(source)
