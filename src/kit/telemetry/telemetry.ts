// What a program tells of itself while it works: spans and measurements. Until telemetry is opened (open.ts) all of this is a
// check of one variable, and no package of OpenTelemetry is loaded.

/** Never a credential, a token, or what a user's program says: all of it leaves this machine. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

/** The place in a trace as it stands in headers and messages (W3C Trace Context). */
export type TracePlace = { traceparent?: string | undefined; tracestate?: string | undefined }

export type Kind = 'internal' | 'server' | 'client' | 'consumer'

/** A piece of work that is under way, to be told more of. */
export type Span = {
  set: (attributes: Attributes) => void
  /** It went wrong; `type` is a word such as an error's code, and never its message. */
  fail: (type: string) => void
}

/** A span that ends when its holder says so. */
export type OpenSpan = Span & {
  rename: (name: string) => void
  /** Spans that begin in here are parts of it. */
  during: <T>(work: () => T) => T
  end: () => void
}

type SpanOptions = { kind?: Kind; attributes?: Attributes }

export type Tracing = {
  begin: (name: string, options: SpanOptions, place?: TracePlace) => OpenSpan
  below: <T>(place: TracePlace, work: () => T) => T
  /** Empty where no trace is under way. */
  place: () => TracePlace
  /** Ids of the span under way, for log lines. */
  ids: () => { trace_id: string; span_id: string } | undefined
}

type Instrument = { name: string; unit: string; description: string }
type Measurement = readonly [value: number, attributes: Attributes]

export type Metering = {
  recorder: (instrument: Instrument, buckets: readonly number[]) => (value: number, attributes: Attributes) => void
  observe: (instrument: Instrument & { isSum?: boolean }, read: () => readonly Measurement[]) => void
  /** Numbers that are kept elsewhere, read at every export. */
  adopt: (source: MetricSource) => void
}

/** A metric as prom-client prints it in JSON, which is all that telemetry knows of prom-client. */
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
  /** Takes each line of the log, as written. */
  takeLine?: ((line: string) => void) | undefined
}

let open: Telemetry = {}

/** Only open.ts calls this, and tests. */
export const setTelemetry = (telemetry: Telemetry): void => {
  open = telemetry
}

/** Whether anybody wants to know of calls. */
export const isFollowed = (): boolean => open.tracing !== undefined || open.metering !== undefined

const errorType = (error: unknown): string => {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  return typeof code === 'string' && /^\w{1,64}$/.test(code) ? code : typeof name === 'string' ? name : 'error'
}

const nothing: Span = { set: () => {}, fail: () => {} }

/** Work that is told of with how long it took and whether it threw. */
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

/** Work that somebody else tells the end of. A place that is none begins a new trace. */
export const beginSpan = (name: string, options: SpanOptions, place?: TracePlace): OpenSpan | undefined =>
  open.tracing?.begin(name, options, place)

/** What begins in here is a part of what another program has under way. */
export const belowPlace = <T>(place: TracePlace, work: () => T): T =>
  open.tracing === undefined ? work() : open.tracing.below(place, work)

/** For the headers of a call to another program, or a message to it. */
export const placeNow = (): TracePlace => open.tracing?.place() ?? {}

/** The place in the trace, as a plain record of headers. */
export const placeHeaders = (): Record<string, string> => placeNow() as Record<string, string>

/** What stands on a line of the log while a trace is under way. */
export const traceIds = (): Record<string, string> => open.tracing?.ids() ?? {}

export const takeLine = (line: string): void => open.takeLine?.(line)

/** How long things take, in seconds. */
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

/** What is so now, read at every export. */
export const observe: Metering['observe'] = (instrument, read) => open.metering?.observe(instrument, read)

export const adoptMetrics: Metering['adopt'] = (source) => open.metering?.adopt(source)
