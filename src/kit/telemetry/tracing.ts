// Makes spans with the tracer of OpenTelemetry. AsyncLocalStorage remembers the current span during asynchronous work.
import {
  context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  isSpanContextValid,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace'
import type { TelemetrySettings } from './settings.ts'
import type { Attributes, Kind, OpenSpan, TracePlace, Tracing } from './telemetry.ts'

const kinds: Record<Kind, SpanKind> = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  consumer: SpanKind.CONSUMER,
}

export const samplerOf = ({ isParentBased, ratio }: TelemetrySettings['sampler']): Sampler => {
  const root =
    ratio === 1 ? new AlwaysOnSampler() : ratio === 0 ? new AlwaysOffSampler() : new TraceIdRatioBasedSampler(ratio)
  return isParentBased ? new ParentBasedSampler({ root }) : root
}

/** Maximum number of characters of each trace header. A longer value is ignored. */
const longest = { traceparent: 128, tracestate: 512 }

const sound = (place: TracePlace): TracePlace => {
  const { traceparent, tracestate } = place
  if (typeof traceparent !== 'string' || traceparent.length > longest.traceparent) return {}
  if (typeof tracestate !== 'string' || tracestate.length > longest.tracestate) return { traceparent }
  return { traceparent, tracestate }
}

const setAll = (span: OtelSpan, attributes: Attributes) => {
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) span.setAttribute(name, value)
}

export const createTracing = (tracer: Tracer, { propagates }: { propagates: boolean }): Tracing => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  const propagator = new W3CTraceContextPropagator()

  /**
   * Returns the OpenTelemetry context for the trace headers in `place`. If `traceparent` is malformed, spans in this context begin
   * new traces.
   */
  const contextAt = (place: TracePlace) =>
    propagates ? propagator.extract(ROOT_CONTEXT, sound(place), defaultTextMapGetter) : ROOT_CONTEXT

  const open = (span: OtelSpan): OpenSpan => {
    const inside = trace.setSpan(context.active(), span)
    return {
      set: (attributes) => setAll(span, attributes),
      fail: (type) => {
        span.setAttribute('error.type', type)
        span.setStatus({ code: SpanStatusCode.ERROR })
      },
      rename: (name) => void span.updateName(name),
      during: (work) => context.with(inside, work),
      end: () => span.end(),
    }
  }

  return {
    begin: (name, { kind = 'internal', attributes = {} }, place) => {
      const above = place === undefined ? context.active() : contextAt(place)
      const span = tracer.startSpan(name, { kind: kinds[kind] }, above)
      setAll(span, attributes)
      return open(span)
    },
    below: (place, work) => context.with(contextAt(place), work),
    place: () => {
      const carrier: TracePlace = {}
      if (propagates) propagator.inject(context.active(), carrier, defaultTextMapSetter)
      return carrier
    },
    ids: () => {
      const at = trace.getSpanContext(context.active())
      return at !== undefined && isSpanContextValid(at) ? { trace_id: at.traceId, span_id: at.spanId } : undefined
    },
  }
}
