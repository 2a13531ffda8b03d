import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { suite, test } from 'node:test'
import { type Receiver, startReceiver } from '#test/telemetry/receiver.ts'

const program = resolve(import.meta.dirname, 'testing/program.ts')

type Ended = { code: number | null; outgoing: Record<string, string>; loaded: number; lines: Record<string, unknown>[] }

/** Short export intervals, so that tests need not wait for the export at the end of the program. */
const often = {
  OTEL_BSP_SCHEDULE_DELAY: '50',
  OTEL_BLRP_SCHEDULE_DELAY: '50',
  OTEL_METRIC_EXPORT_INTERVAL: '300',
}

/** Runs testing/program.ts. The program is told to end when `arrived` resolves or, without `arrived`, immediately. */
const run = async (env: Record<string, string>, arrived?: Promise<void>): Promise<Ended> => {
  const child = spawn(process.execPath, [program], { env: { ...often, ...env } })
  if (arrived === undefined) child.stdin.end()
  else void arrived.catch(() => {}).finally(() => child.stdin.end())
  const [output, log]: Buffer[][] = [[], []]
  child.stdout.on('data', (chunk) => output!.push(chunk))
  child.stderr.on('data', (chunk) => log!.push(chunk))
  const [code] = await once(child, 'close')
  await arrived
  const text = Buffer.concat(log!).toString()
  assert.equal(code, 0, text)
  return {
    code,
    ...JSON.parse(Buffer.concat(output!).toString()),
    lines: text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line)),
  }
}

const to = ({ url }: Pick<Receiver, 'url'>, more: Record<string, string> = {}) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  ...more,
})

const pathsOf = ({ posted }: Receiver) => new Set(posted.map(({ path }) => path))
const arrivedAt = (receiver: Receiver, paths: readonly string[]) =>
  receiver.until(paths.join(), () => paths.every((path) => pathsOf(receiver).has(path)))

const onlyTraces = { OTEL_LOGS_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none' }

const parent = '0af7651916cd43dd8448eb211c80319c'
const traceparent = `00-${parent}-b7ad6b7169203331-01`

suite('telemetry of a program', () => {
  test('without telemetry settings, no OpenTelemetry package is loaded, and log lines have no trace id', async () => {
    const { loaded, outgoing, lines } = await run({ TEST_TRACEPARENT: traceparent })
    assert.deepEqual([loaded, outgoing], [0, {}])
    assert.deepEqual(
      lines.map(({ msg, trace_id }) => [msg, trace_id]),
      [
        ['in a trace', undefined],
        ['a letter', undefined],
        ['in no trace', undefined],
      ],
    )
  })

  test('telemetry contains the name of the service, and the spans of a call belong to the caller’s trace', async () => {
    await using receiver = await startReceiver()
    const env = to(receiver, {
      OTEL_EXPORTER_OTLP_HEADERS: 'x-token=of-the-operator',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      TEST_TRACEPARENT: traceparent,
      TEST_TRACESTATE: 'vendor=1',
    })
    const all = () => receiver.posted.map(({ body }) => body.toString()).join('')
    const expected = ['outer', 'inner', 'in a trace', 'in no trace', 'took_seconds', 'test.duration']
    const arrived = receiver.until(expected.join(), () => expected.every((name) => all().includes(`"${name}"`)))
    const { outgoing, lines } = await run(env, arrived)
    assert.ok(receiver.posted.every(({ headers }) => headers['x-token'] === 'of-the-operator'))

    const spans = receiver.spans()
    const [outer, inner] = ['outer', 'inner'].map((name) => spans.find((one) => one.name === name)!)
    assert.ok(outer && inner)
    assert.deepEqual(
      [outer.service, outer.traceId, outer.parentSpanId, outer.kind, outer.attributes],
      ['test-program', parent, 'b7ad6b7169203331', 2, { answer: 42 }],
    )
    assert.deepEqual([inner.traceId, inner.parentSpanId], [parent, outer.spanId])
    assert.deepEqual([inner.isFailure, inner.attributes], [true, { 'error.type': 'went_wrong' }])
    assert.deepEqual(outgoing, { traceparent: `00-${parent}-${inner.spanId}-01`, tracestate: 'vendor=1' })

    const sent = receiver.lines().filter(({ body }) => body.startsWith('in '))
    assert.deepEqual(
      sent.map(({ body, traceId }) => [body, traceId]),
      [
        ['in a trace', parent],
        ['in no trace', ''],
      ],
    )
    assert.equal(sent[0]?.attributes['sandboxId'], 'box')
    const written = lines.find(({ msg }) => msg === 'in a trace')
    assert.deepEqual([written?.['trace_id'], written?.['span_id']], [parent, inner.spanId])
    assert.doesNotMatch(all(), /for this machine only|nobody needs to hear/)
    assert.match(all(), /deployment.environment.name/)

    const point = (name: string) => receiver.metrics().find((one) => one.name === name)?.points[0]
    assert.deepEqual(point('made_total')?.['attributes'], { kind: 'cold' })
    assert.equal(point('made_total')?.['asDouble'], 3)
    assert.equal(point('waiting')?.['asDouble'], 7)
    const took = point('took_seconds')
    assert.deepEqual(
      [took?.['explicitBounds'], took?.['bucketCounts']],
      [
        [1, 5],
        [1, 2, 1],
      ],
    )
    assert.deepEqual([took?.['count'], took?.['sum']], [4, 65.5])
    assert.deepEqual(point('test.duration')?.['attributes'], { verb: 'make' })
    assert.ok(point('process.memory.usage'))
  })

  test('a program sends telemetry as protobuf by default', async () => {
    await using receiver = await startReceiver()
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_SERVICE_NAME: 'named-by-its-operator' }
    await run(env, arrivedAt(receiver, ['/v1/logs', '/v1/metrics', '/v1/traces']))
    for (const { headers, body } of receiver.posted) {
      assert.equal(headers['content-type'], 'application/x-protobuf')
      assert.ok(body.includes('named-by-its-operator'))
    }
  })

  test('traces go to the endpoint that is set for them, and logs whose exporter is `none` are not sent', async () => {
    await using receiver = await startReceiver()
    const env = {
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/elsewhere`,
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_LOGS_EXPORTER: 'none',
    }
    await run(env, arrivedAt(receiver, ['/elsewhere', '/v1/metrics']))
    assert.deepEqual([...pathsOf(receiver)].sort(), ['/elsewhere', '/v1/metrics'])
  })

  test('a program ignores an invalid or far too long `traceparent` of a call, and begins a new trace', async () => {
    await using receiver = await startReceiver()
    const given = [
      'nonsense',
      `ff-${parent}-b7ad6b7169203331-01`,
      '00-00000000000000000000000000000000-b7ad6b7169203331-01',
      `00-${parent}-0000000000000000-01`,
      `00-${parent}-b7ad6b7169203331-01${'-x'.repeat(5000)}`,
    ]
    const begunIn = () => receiver.spans().filter(({ name }) => name === 'more')
    const arrived = receiver.until('each span', () => begunIn().length === given.length)
    await run(to(receiver, { TEST_MORE_PARENTS: given.join(' '), ...onlyTraces }), arrived)
    const begun = begunIn()
    assert.equal(new Set(begun.map(({ traceId }) => traceId)).size, given.length)
    assert.ok(begun.every(({ parentSpanId, traceId }) => parentSpanId === '' && traceId !== parent))
  })

  test('if the caller does not sample a trace, the trace is passed on to the next program, but not exported', async () => {
    await using receiver = await startReceiver()
    const env = to(receiver, { TEST_TRACEPARENT: traceparent.replace(/1$/, '0'), ...onlyTraces })
    // If the first span, which is not sampled, were exported, it would arrive before this second one, which is sampled.
    const later = receiver.until('a later span', () => receiver.spans().some(({ name }) => name === 'more'))
    const { outgoing } = await run({ ...env, TEST_MORE_PARENTS: traceparent }, later)
    assert.deepEqual(new Set(receiver.spans().map(({ name }) => name)), new Set(['more']))
    assert.match(outgoing['traceparent'] ?? '', new RegExp(`^00-${parent}-[0-9a-f]{16}-00$`))
  })

  for (const [what, env] of [
    ['is not there', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' }],
    ['is there and refuses', undefined],
  ] as const) {
    test(`a telemetry receiver that ${what} costs one log line each for traces, metrics and logs; the program ends normally`, async () => {
      await using refusing = await startReceiver((response) => response.writeHead(400).end())
      const { lines } = await run({ TEST_SPANS: '20000', ...(env ?? to(refusing)) })
      const told = lines.filter(({ msg }) => String(msg).startsWith('telemetry cannot be sent'))
      assert.equal(new Set(told.map(({ signal }) => signal)).size, told.length)
      assert.ok(lines.length < 12, JSON.stringify(lines))
    })
  }

  test('a telemetry receiver that never answers does not prevent a program from ending', async () => {
    await using silent = await startReceiver(() => {})
    const asked = silent.until('a call', () => silent.posted.length > 0)
    assert.equal((await run({ TEST_SPANS: '20000', ...to(silent) }, asked)).code, 0)
  })
})
