// A small program with telemetry, which telemetry.test.ts starts. It makes spans, log lines and metrics, prints what it
// has seen, and ends.
import { createRequire } from 'node:module'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { createLog } from '#src/kit/log.ts'
import { openTelemetry } from '../open.ts'
import { readTelemetry } from '../settings.ts'
import { adoptMetrics, beginSpan, duration, placeNow, span } from '../telemetry.ts'

const log = createLog('test')
const telemetry = await openTelemetry(readTelemetry(process.env, 'test-program'), log)

const registry = new Registry()
const registers = [registry]
new Counter({ name: 'made_total', help: 'Made.', labelNames: ['kind'], registers }).inc({ kind: 'cold' }, 3)
new Gauge({ name: 'waiting', help: 'Waiting.', registers }).set(7)
const seconds = new Histogram({ name: 'took_seconds', help: 'Took.', buckets: [1, 5], registers })
for (const value of [0.5, 2, 3, 60]) seconds.observe(value)
adoptMetrics(() => registry.getMetricsAsJSON())
const took = duration('test.duration', 'Took.', [1, 5])
took.record(2, { verb: 'make' })

const place = { traceparent: process.env['TEST_TRACEPARENT'], tracestate: process.env['TEST_TRACESTATE'] }
const call = beginSpan('outer', { kind: 'server', attributes: { answer: 42, absent: undefined } }, place)
const seen = { outgoing: {} }
const work = () =>
  span('inner', {}, async () => {
    log.info({ sandboxId: 'box' }, 'in a trace')
    log.info({ isPrivate: true, text: 'for this machine only' }, 'a letter')
    await Promise.resolve()
    seen.outgoing = placeNow()
    throw Object.assign(new Error('a message that nobody needs to hear'), { code: 'went_wrong' })
  }).catch(() => undefined)
await (call === undefined ? work() : call.during(work))
call?.end()
log.info('in no trace')

for (const traceparent of (process.env['TEST_MORE_PARENTS'] ?? '').split(' ').filter(Boolean)) {
  beginSpan('more', {}, { traceparent })?.end()
}

const many = Number(process.env['TEST_SPANS'] ?? 0)
for (let count = 0; count < many; count++) beginSpan('one of many', {})?.end()

// The library prom-client loads @opentelemetry/api even without telemetry. That package does nothing by itself, so
// `loaded` leaves it out.
const loaded = Object.keys(createRequire(import.meta.url).cache).filter((file) =>
  /@opentelemetry\/(?!api\/)/.test(file),
)
// Waits until the test closes standard input.
for await (const _ of process.stdin);
await telemetry.close()
process.stdout.write(JSON.stringify({ ...seen, loaded: loaded.length }))
process.exit(0)
