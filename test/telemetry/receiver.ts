// A receiver for telemetry (OTLP over HTTP) for tests. It stores everything that it receives, and parses JSON bodies.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

type Value = { stringValue?: string; intValue?: number | string; doubleValue?: number; boolValue?: boolean }
type Pair = { key: string; value: Value }
type Resource = { attributes: Pair[] }

export type SeenSpan = {
  service: string
  name: string
  kind: number
  traceId: string
  spanId: string
  parentSpanId: string
  attributes: Record<string, unknown>
  isFailure: boolean
}
export type SeenLine = { service: string; body: string; traceId: string; attributes: Record<string, unknown> }
export type SeenMetric = { service: string; name: string; unit: string; points: Record<string, unknown>[] }

export type Posted = { path: string; headers: IncomingMessage['headers']; body: Buffer }

export type Receiver = {
  /** The value of OTEL_EXPORTER_OTLP_ENDPOINT for programs that send to this receiver. */
  url: string
  posted: readonly Posted[]
  spans: () => SeenSpan[]
  lines: () => SeenLine[]
  metrics: () => SeenMetric[]
  /** Resolves when `done` returns true. `done` is called whenever data arrives. Rejects after a time limit. */
  until: (what: string, done: () => boolean) => Promise<void>
  [Symbol.asyncDispose]: () => Promise<void>
}

const plain = ({ stringValue, intValue, doubleValue, boolValue }: Value) =>
  stringValue ?? (intValue === undefined ? (doubleValue ?? boolValue) : Number(intValue))

const record = (pairs: readonly Pair[] = []) => Object.fromEntries(pairs.map(({ key, value }) => [key, plain(value)]))

const serviceOf = (resource: Resource) => String(record(resource.attributes)['service.name'])

// biome-ignore lint/suspicious/noExplicitAny: OTLP as it is sent, of which each reader takes what it knows.
type Sent = any

const spansIn = (sent: Sent): SeenSpan[] =>
  (sent.resourceSpans ?? []).flatMap(({ resource, scopeSpans }: Sent) =>
    scopeSpans.flatMap(({ spans }: Sent) =>
      spans.map(({ name, kind, traceId, spanId, parentSpanId = '', attributes, status }: Sent) => ({
        service: serviceOf(resource),
        name,
        kind,
        traceId,
        spanId,
        parentSpanId,
        attributes: record(attributes),
        isFailure: status?.code === 2,
      })),
    ),
  )

const linesIn = (sent: Sent): SeenLine[] =>
  (sent.resourceLogs ?? []).flatMap(({ resource, scopeLogs }: Sent) =>
    scopeLogs.flatMap(({ logRecords }: Sent) =>
      logRecords.map(({ body, traceId = '', attributes }: Sent) => ({
        service: serviceOf(resource),
        body: body.stringValue,
        traceId,
        attributes: record(attributes),
      })),
    ),
  )

const metricsIn = (sent: Sent): SeenMetric[] =>
  (sent.resourceMetrics ?? []).flatMap(({ resource, scopeMetrics }: Sent) =>
    scopeMetrics.flatMap(({ metrics }: Sent) =>
      metrics.map(({ name, unit, sum, gauge, histogram }: Sent) => ({
        service: serviceOf(resource),
        name,
        unit,
        points: (sum ?? gauge ?? histogram).dataPoints.map(({ attributes, ...point }: Sent) => ({
          ...point,
          attributes: record(attributes),
        })),
      })),
    ),
  )

const waitMs = 60_000

/**
 * Starts a receiver. `answer` is called after each request has been read, and sends the answer. By default, the answer is 200 with
 * an empty JSON object.
 */
export const startReceiver = async (
  answer: (response: ServerResponse) => void = (response) => response.writeHead(200).end('{}'),
): Promise<Receiver> => {
  const posted: Posted[] = []
  const waiting = new Set<() => void>()
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    posted.push({ path: request.url ?? '', headers: request.headers, body: Buffer.concat(parts) })
    answer(response)
    for (const look of waiting) look()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const read = <Seen>(path: string, take: (sent: Sent) => Seen[]): Seen[] =>
    posted.flatMap((one) => (one.path === path ? take(JSON.parse(one.body.toString())) : []))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    posted,
    spans: () => read('/v1/traces', spansIn),
    lines: () => read('/v1/logs', linesIn),
    metrics: () => read('/v1/metrics', metricsIn),
    until: (what, done) =>
      new Promise((resolve, reject) => {
        const late = setTimeout(() => {
          waiting.delete(look)
          reject(new Error(`did not arrive: ${what}`))
        }, waitMs)
        const look = () => {
          if (!done()) return
          clearTimeout(late)
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
