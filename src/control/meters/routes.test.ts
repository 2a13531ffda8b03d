import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { MeterReading } from '#src/wire/meter-reading.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { connectRunner, type SimulatedRunner, untilState } from '#test/control/simulated-runner.ts'

const waiting = { sandboxes: { createWaitSeconds: 20 } }
const reading: MeterReading = {
  cpuCount: 2,
  cpuUsedPct: 12.5,
  memTotal: 2 ** 30,
  memUsed: 2 ** 28,
  memCache: 2 ** 20,
  diskTotal: 3 * 2 ** 30,
  diskUsed: 2 ** 25,
}
const names = {
  cpuUsedPct: 'daytona.sandbox.cpu.utilization',
  cpuCount: 'daytona.sandbox.cpu.limit',
  memUsed: 'daytona.sandbox.memory.usage',
  memTotal: 'daytona.sandbox.memory.limit',
  memCache: 'daytona.sandbox.memory.cache',
  diskUsed: 'daytona.sandbox.filesystem.usage',
  diskTotal: 'daytona.sandbox.filesystem.total',
} as const

const create = async (app: TestControl): Promise<string> =>
  (await app.as('member').post('/sandbox', { name: 'box' })).body.id

type Point = { timestamp: string; value: number }
type Series = { metricName: string; dataPoints: Point[] }

const seriesOf = async (app: TestControl, query: Record<string, string> = {}): Promise<Map<string, Point[]>> => {
  const reply = await app.as('viewer').get(`/sandbox/box/telemetry/metrics?${new URLSearchParams(query)}`)
  assert.equal(reply.status, 200, reply.text)
  return new Map(reply.body.series.map(({ metricName, dataPoints }: Series) => [metricName, dataPoints]))
}
const cpuOf = async (app: TestControl, query: Record<string, string> = {}) =>
  (await seriesOf(app, query)).get(names.cpuUsedPct) ?? []

const countOf = async ({ database }: TestControl) =>
  Number((await database.sql`select count(*) as count from sandbox_meters`)[0]?.['count'])

/** Advances the clock by a minute, lets the runner report a sample, and waits until the sample is stored. */
const sample = async (app: TestControl, runner: SimulatedRunner, sandboxId: string, changes: object = {}) => {
  app.clock.advance({ minutes: 1 })
  const before = await countOf(app)
  runner.say({ type: 'meters', samples: [{ sandboxId, ...reading, ...changes }] })
  while ((await countOf(app)) === before) await pause(5)
}

suite('GET /sandbox/{sandboxIdOrName}/telemetry/metrics', () => {
  test('GET /sandbox/{sandboxIdOrName}/telemetry/metrics returns a series per metric with a point per sample', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    await sample(app, runner, id)
    const first = app.clock.now()
    await sample(app, runner, id, { cpuUsedPct: 50, memUsed: 2 ** 29, diskUsed: undefined })
    const second = app.clock.now()
    const series = await seriesOf(app)
    for (const [field, name] of Object.entries(names)) {
      const [point] = series.get(name) ?? []
      assert.deepEqual(point, { timestamp: first.toISOString(), value: reading[field as keyof typeof names] }, name)
    }
    assert.deepEqual(series.get(names.cpuUsedPct)?.[1], { timestamp: second.toISOString(), value: 50 })
    // If the runner cannot measure a value, the series gets no point for that sample. A point with 0 would be wrong.
    assert.equal(series.get(names.diskUsed)?.length, 1)
  })

  test('GET /sandbox/{sandboxIdOrName}/telemetry/metrics returns only the requested metrics and times', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    const times: string[] = []
    for (const cpuUsedPct of [1, 2, 3]) {
      await sample(app, runner, id, { cpuUsedPct })
      times.push(app.clock.now().toISOString())
    }
    const [first = '', second = '', third = ''] = times
    const valuesOf = async (query: Record<string, string>) => (await cpuOf(app, query)).map(({ value }) => value)
    assert.deepEqual(await valuesOf({ from: second, to: third }), [2, 3])
    assert.deepEqual(await valuesOf({ to: first }), [1])
    const metricNames = [names.memUsed, names.cpuUsedPct, 'no.such'].join(',')
    const series = await seriesOf(app, { metricNames })
    assert.deepEqual([...series.keys()].sort(), [names.cpuUsedPct, names.memUsed].sort())
    assert.equal((await seriesOf(app, { metricNames: 'no.such' })).size, 0)
  })

  test('GET /sandbox/{sandboxIdOrName}/telemetry/metrics returns at most 1000 points per series; if there are more samples, each point is an average', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app)
    await app.database.sql`
      insert into sandbox_meters
      select ${id}::uuid, ${app.clock.now()}::timestamptz + n * interval '20 seconds', 1, n % 2 * 100, 1, 1, 1, 1, 1
      from generate_series(1, 6000) n`
    app.clock.advance({ minutes: 2000 })
    const points = await cpuOf(app)
    assert.ok(points.length > 900 && points.length <= 1000, String(points.length))
    assert.equal(Math.round(points.reduce((sum, { value }) => sum + value, 0) / points.length), 50)
    assert.equal(points.at(-1)?.timestamp, app.clock.now().toISOString())
  })

  test('usage samples are hidden if they are from before the sandbox’s creation or claim, or too old', async () => {
    await using app = await startControl({ ...waiting, settings: { meterHours: 1 } })
    await using runner = await connectRunner(app)
    const id = await create(app)
    await sample(app, runner, id)
    await app.database.sql`update sandboxes set created_at = ${app.clock.now()}::timestamptz + interval '1 second'`
    assert.deepEqual(await cpuOf(app, { from: '2000-01-01T00:00:00Z' }), [])
    await app.database.sql`update sandboxes set created_at = '2000-01-01'`
    assert.equal((await cpuOf(app)).length, 1)
    app.clock.advance({ minutes: 61 })
    assert.deepEqual(await cpuOf(app), [])
    assert.equal(await countOf(app), 1)
    await app.sweep()
    assert.equal(await countOf(app), 0)
  })

  test('GET /sandbox/{sandboxIdOrName}/telemetry/metrics answers 400 for an invalid time span, 401 without a key, 404 to strangers', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    await create(app)
    const at = '/sandbox/box/telemetry/metrics'
    for (const query of ['from=yesterday', 'to=5', 'from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z'])
      assert.equal((await app.as('viewer').get(`${at}?${query}`)).status, 400, query)
    const many = Array.from({ length: 101 }, () => 'metricNames=a').join('&')
    assert.equal((await app.as('viewer').get(`${at}?${many}`)).status, 400)
    assert.equal((await app.as('nobody').get(at)).status, 401)
    assert.equal((await app.as('stranger').get(at)).status, 404)
    assert.equal((await app.as('viewer').get('/sandbox/no-such/telemetry/metrics')).status, 404)
  })
})

suite('the samples that runners send', () => {
  test('a runner’s samples are stored only for that runner’s sandboxes, at most one per sandbox in 5 seconds', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    await sample(app, runner, id)
    const { id: other } = (await app.as('member').post('/sandbox', { name: 'other' })).body
    await app.database.sql`update sandboxes set runner_id = null where id = ${other}`
    const samples = [other, 'no-such', id].map((sandboxId) => ({ sandboxId, ...reading }))
    runner.say({ type: 'meters', samples })
    const generation = (await runner.untilAsked(({ sandboxId }) => sandboxId === id)).generation
    // Control handles the messages of one runner in order. When this report is stored, control has already handled the samples.
    runner.report({ sandboxId: id, generation, state: 'stopped', cause: { exitCode: 0 } })
    await untilState(app, id, 'stopped')
    assert.equal(await countOf(app), 1)
  })

  test('samples of resource use are deleted with their sandbox’s row', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    await sample(app, runner, id)
    await app.database.sql`delete from sandboxes where id = ${id}`
    assert.equal(await countOf(app), 0)
  })
})
