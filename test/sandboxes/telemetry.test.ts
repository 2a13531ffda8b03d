// Checks the telemetry of a server while a sandbox is created and used: one trace for each client's call, and /metrics. Telemetry
// must not contain secrets.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { accessKeptMs } from '#src/wire/access.ts'
import { needsRoot } from '#test/needs-root.ts'
import { type Receiver, type SeenSpan, startReceiver } from '#test/telemetry/receiver.ts'
import { type Platform, platform } from './harness.ts'

const control = 'alcove-control'
const gate = 'alcove-gate'
const runner = 'alcove-runner'

suite('telemetry of a server', { skip: needsRoot }, () => {
  let receiver: Receiver
  let server: Platform
  const secrets = ['in-the-environment-of-a-sandbox', 'in-the-environment-of-a-command', 'said-by-a-command']
  let sandboxId = ''

  before(async () => {
    receiver = await startReceiver()
    server = await platform({
      own: true,
      image: 'small',
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
        OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
        OTEL_METRIC_EXPORT_INTERVAL: '500',
        OTEL_METRIC_EXPORT_TIMEOUT: '400',
        OTEL_BSP_SCHEDULE_DELAY: '200',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      },
    })
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
    await receiver?.[Symbol.asyncDispose]()
  })

  /** Makes a call that names a new OpenTelemetry trace in the header `traceparent`, as a client with telemetry does. */
  const call = async (method: string, url: string, body: unknown, traceparent?: string) => {
    const traceId = randomBytes(16).toString('hex')
    const parentId = randomBytes(8).toString('hex')
    const reply = await fetch(url, {
      method,
      headers: {
        authorization: `Bearer ${server.key}`,
        'content-type': 'application/json',
        traceparent: traceparent ?? `00-${traceId}-${parentId}-01`,
      },
      body: JSON.stringify(body),
    })
    assert.equal(reply.status, 200, await reply.clone().text())
    return { traceId, parentId, record: (await reply.json()) as Record<string, unknown> }
  }

  const spansOf = (traceId: string) => receiver.spans().filter((one) => one.traceId === traceId)
  const arrived = async (traceId: string, names: readonly (readonly [string, string])[]): Promise<SeenSpan[]> => {
    const isThere = ([service, name]: readonly [string, string]) =>
      spansOf(traceId).some((one) => one.service === service && one.name === name)
    const missing = () => names.filter((one) => !isThere(one))
    await receiver.until(names.join('; '), () => missing().length === 0)
    return spansOf(traceId)
  }
  /** Returns service and name of the span `from`, of its parent, and so on up to the client's span. */
  const wayUp = (spans: SeenSpan[], from: string): string[] => {
    const span = spans.find(({ spanId }) => spanId === from)
    return span === undefined ? [] : [`${span.service} ${span.name}`, ...wayUp(spans, span.parentSpanId)]
  }
  const wayUpFrom = (spans: SeenSpan[], service: string, name: string) =>
    wayUp(spans, spans.find((one) => one.service === service && one.name === name)?.spanId ?? '')

  test('client, control and runner report the create of a sandbox as one OpenTelemetry trace', async () => {
    const { traceId, parentId, record } = await call('POST', `${server.url}/api/sandbox?token=in-a-query`, {
      env: { SECRET: secrets[0] },
    })
    sandboxId = String(record['id'])
    const spans = await arrived(traceId, [
      [control, 'POST /api/sandbox'],
      [control, 'transaction'],
      [control, 'sandbox report'],
      [runner, 'sandbox start'],
      ...['disk', 'network', 'network policy', 'launch', 'journal', 'agent answers'].map(
        (step) => [runner, step] as const,
      ),
    ])
    assert.deepEqual(wayUpFrom(spans, runner, 'launch'), [
      `${runner} launch`,
      `${runner} sandbox start`,
      `${control} POST /api/sandbox`,
    ])
    assert.deepEqual(wayUpFrom(spans, control, 'sandbox report').slice(-1), [`${control} POST /api/sandbox`])
    const served = spans.find(({ name }) => name === 'POST /api/sandbox')
    assert.equal(served?.parentSpanId, parentId)
    const { 'alcove.organization.id': organization, ...attributes } = served?.attributes ?? {}
    assert.equal(organization, record['organizationId'])
    assert.deepEqual(attributes, {
      'http.request.method': 'POST',
      'http.route': '/api/sandbox',
      'http.response.status_code': 200,
      'url.scheme': 'http',
    })
    assert.ok(spans.every(({ isFailure }) => !isFailure))
  })

  const executeRoute = '/toolbox/:sandboxId/process/execute'
  const execute = (traceparent?: string) =>
    call(
      'POST',
      `${server.url.replace(/\d+$/, (port) => String(Number(port) + 1))}/toolbox/${sandboxId}/process/execute`,
      { command: `printf '%s' ${secrets[2]}`, envs: { SECRET: secrets[1] } },
      traceparent,
    )

  test('client, gate, control and toolbox report an `execute` call as one OpenTelemetry trace', async () => {
    // Wait until the gate's cached answer has expired. The gate must then ask control during `execute`, and the trace must contain
    // this question too.
    await pause(accessKeptMs + 100)
    const { traceId, parentId, record } = await execute()
    assert.equal(record['result'], secrets[2])
    const spans = await arrived(traceId, [
      [gate, 'POST /api/proxy/access'],
      [control, 'POST /api/proxy/access'],
      [gate, 'POST /toolbox/:sandboxId/process/execute'],
      [gate, 'agent exec'],
    ])
    const front = `${gate} POST ${executeRoute}`
    assert.deepEqual(wayUpFrom(spans, gate, 'agent exec'), [`${gate} agent exec`, front])
    assert.deepEqual(wayUpFrom(spans, control, 'POST /api/proxy/access'), [
      `${control} POST /api/proxy/access`,
      `${gate} POST /api/proxy/access`,
      front,
    ])
    const served = spans.find(({ service, name }) => `${service} ${name}` === front)
    assert.deepEqual([served?.parentSpanId, served?.attributes['alcove.sandbox']], [parentId, sandboxId])
  })

  test('the telemetry metrics count each toolbox call once, and name the call’s route (`http.route`)', async () => {
    const rows = () =>
      receiver
        .metrics()
        .filter(({ service, name }) => service === gate && name === 'http.server.request.duration')
        .at(-1)
        ?.points.map(({ attributes, count }) => [
          String((attributes as Record<string, unknown>)['http.route']),
          Number(count),
        ])
        .filter(([route]) => String(route).startsWith('/toolbox')) ?? []
    await receiver.until('the call of the last test to be counted', () => rows().length > 0)
    assert.deepEqual(rows(), [[executeRoute, 1]])
  })

  test('the gate ignores an invalid header `traceparent` of a call, and begins a new trace', async () => {
    const before = new Set(receiver.spans().map(({ spanId }) => spanId))
    const { traceId } = await execute(`00-${'z'.repeat(32)}-nonsense-01`)
    const isNew = ({ service, name, spanId }: SeenSpan) =>
      service === gate && name.endsWith(executeRoute) && !before.has(spanId)
    await receiver.until('a span of the gate', () => receiver.spans().some(isNew))
    const served = receiver.spans().find(isNew)
    assert.deepEqual([served?.parentSpanId, served?.traceId === traceId], ['', false])
  })

  test('the trace of a refused call has the answer’s status and error code, but no content of the request', async () => {
    const asked = `${server.url}/api/preview/${randomBytes(12).toString('hex')}/nowhere`
    secrets.push(new URL(asked).pathname)
    assert.equal((await fetch(asked)).status, 404)
    const isIt = ({ service, name }: SeenSpan) => service === control && name === 'GET'
    await receiver.until('a call of no route', () => receiver.spans().some(isIt))
    const refused = receiver.spans().find(isIt)
    assert.deepEqual(refused?.attributes['http.response.status_code'], 404)
    assert.equal(refused?.isFailure, false)
  })

  test('all metrics of /metrics are also sent as telemetry, with durations of calls and of a runner’s verbs', async () => {
    const reply = await fetch(`${server.url}/api/metrics`, { headers: { authorization: `Bearer ${server.key}` } })
    const printed = [...(await reply.text()).matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, name]) => name!)
    assert.ok(printed.includes('alcove_sandboxes'))
    const expected = [
      ...printed.map((name) => `${control} ${name}`),
      ...[control, gate].map((service) => `${service} http.server.request.duration`),
      `${runner} alcove.runner.verb.duration`,
      `${runner} alcove.runner.sandboxes`,
      `${runner} alcove.runner.build.cache`,
    ]
    const seen = () => new Set(receiver.metrics().map(({ service, name }) => `${service} ${name}`))
    await receiver.until('all metrics', () => expected.every((one) => seen().has(one)))
    const started = () =>
      receiver
        .metrics()
        .filter(({ name }) => name === 'alcove_sandboxes')
        .flatMap(({ points }) => points)
        .filter(({ attributes }) => JSON.stringify(attributes) === '{"state":"started","warm":"false"}')
        .at(-1)?.['asDouble']
    await receiver.until('the sandbox to be counted', () => started() === 1)
  })

  test('every server program sends its log as telemetry, and no telemetry contains a secret', async () => {
    const programs = [control, gate, runner]
    const seen = () => new Set(receiver.lines().map(({ service }) => service))
    await receiver.until('lines of each program', () => programs.every((one) => seen().has(one)))
    const all = Buffer.concat(receiver.posted.map(({ body }) => body)).toString()
    assert.ok(all.includes(sandboxId))
    for (const secret of [...secrets, server.key, 'in-a-query']) assert.ok(!all.includes(secret), secret)
  })

  test('if the telemetry receiver cannot be reached, calls still succeed, and the server can be stopped', async () => {
    await receiver[Symbol.asyncDispose]()
    const { record } = await execute()
    assert.equal(record['result'], secrets[2])
    assert.equal((await server.api('DELETE', `/sandbox/${sandboxId}`)).status, 200)
    await server.stop()
  })
})
