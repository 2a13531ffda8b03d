import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readTelemetry } from './settings.ts'

const read = (env: Record<string, string>) => readTelemetry(env, 'alcove-test')
const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }

suite('settings of telemetry', () => {
  test('without any OTEL_ setting no telemetry is sent, and there is no warning', () => {
    const { send, warnings, serviceName } = read({})
    assert.deepEqual([send, warnings, serviceName], [{}, [], 'alcove-test'])
  })

  test('if only an endpoint for telemetry is set, traces, metrics and logs are sent there as protobuf', () => {
    assert.deepEqual(read(endpoint).send, { traces: 'http/protobuf', metrics: 'http/protobuf', logs: 'http/protobuf' })
  })

  test('an exporter without an endpoint sends to the default endpoint, and the exporter `none` sends nothing', () => {
    assert.deepEqual(read({ OTEL_TRACES_EXPORTER: 'otlp' }).send, { traces: 'http/protobuf' })
    assert.deepEqual(read({ ...endpoint, OTEL_LOGS_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'NONE' }).send, {
      traces: 'http/protobuf',
    })
  })

  test('the protocol set for logs does not change the protocol of traces', () => {
    const { send } = read({ ...endpoint, OTEL_EXPORTER_OTLP_LOGS_PROTOCOL: 'http/json', OTEL_METRICS_EXPORTER: 'none' })
    assert.deepEqual(send, { traces: 'http/protobuf', logs: 'http/json' })
  })

  test('every sampler in OpenTelemetry’s specification is supported', () => {
    const sampler = (name: string, argument = '') =>
      read({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: argument }).sampler
    assert.deepEqual(read({}).sampler, { isParentBased: true, ratio: 1 })
    assert.deepEqual(sampler('always_off'), { isParentBased: false, ratio: 0 })
    assert.deepEqual(sampler('traceidratio', '0.25'), { isParentBased: false, ratio: 0.25 })
    assert.deepEqual(sampler('parentbased_traceidratio', '0.5'), { isParentBased: true, ratio: 0.5 })
    assert.deepEqual(sampler('traceidratio'), { isParentBased: false, ratio: 1 })
  })

  for (const [env, warning, sends] of [
    [{ OTEL_TRACES_EXPORTER: 'zipkin' }, /OTEL_TRACES_EXPORTER is ignored/, ['metrics', 'logs']],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, /ENDPOINT is ignored/, []],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, /PROTOCOL must be/, []],
    [{ OTEL_TRACES_SAMPLER: 'jaeger_remote' }, /OTEL_TRACES_SAMPLER is ignored/, ['traces', 'metrics', 'logs']],
    [
      { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' },
      /_ARG is ignored/,
      ['traces', 'metrics', 'logs'],
    ],
    [{ OTEL_PROPAGATORS: 'b3' }, /OTEL_PROPAGATORS is ignored/, ['traces', 'metrics', 'logs']],
    [{ OTEL_BSP_MAX_QUEUE_SIZE: '-1' }, /OTEL_BSP_MAX_QUEUE_SIZE is ignored/, ['traces', 'metrics', 'logs']],
  ] as const) {
    test(`a wrong telemetry setting causes a warning, and the program still starts: ${JSON.stringify(env)}`, () => {
      const { send, warnings } = read({ ...endpoint, ...env })
      assert.match(warnings.join('\n'), warning)
      assert.deepEqual(Object.keys(send), sends)
    })
  }

  test('a warning about a telemetry setting does not show the value, which may contain a password', () => {
    const { warnings } = read({ OTEL_EXPORTER_OTLP_ENDPOINT: 'ftp://user:secret@collector' })
    assert.ok(warnings.length > 0)
    assert.doesNotMatch(warnings.join(), /secret/)
  })

  test('with the setting OTEL_SDK_DISABLED, a program sends no telemetry and logs no warning about that', () => {
    const { send, warnings } = read({ ...endpoint, OTEL_SDK_DISABLED: 'TRUE', OTEL_PROPAGATORS: 'b3' })
    assert.deepEqual([send, warnings], [{}, []])
  })

  test('the batch size of telemetry spans is never larger than the queue for spans', () => {
    assert.deepEqual(read({ OTEL_BSP_MAX_QUEUE_SIZE: '16' }).spans, {
      scheduledDelayMillis: 5000,
      exportTimeoutMillis: 30_000,
      maxQueueSize: 16,
      maxExportBatchSize: 16,
    })
  })
})
