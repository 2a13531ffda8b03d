import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'

/** Requests the metrics. Returns the value of each `name{labels}`. */
const scrape = async (app: TestControl): Promise<Map<string, number>> => {
  const { status, text } = await app.as('admin').get('/metrics')
  assert.equal(status, 200, text)
  return new Map(
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )
}

suite('GET /metrics', () => {
  test('GET /metrics answers with text for Prometheus to operators, 403 to owners, and 401 without a credential', async () => {
    await using app = await startControl()
    const { status, headers } = await app.as('admin').get('/metrics')
    assert.deepEqual([status, headers['content-type']], [200, 'text/plain; version=0.0.4; charset=utf-8'])
    assert.equal((await app.as('owner').get('/metrics')).status, 403)
    assert.equal((await app.as('nobody').get('/metrics')).status, 401)
  })

  test('GET /metrics shows the numbers of sandboxes by state, of runners, and of queued tasks', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using runner = await connectRunner(app)
    await app.as('member').post('/sandbox', { name: 'box' })
    runner.behave(() => ({ type: 'silent' }))
    await app.as('member').post('/sandbox/box/stop')
    app.clock.advance({ seconds: 30 })
    const found = await scrape(app)
    assert.equal(found.get('alcove_sandboxes{state="stopping",warm="false"}'), 1)
    assert.equal(found.get('alcove_sandboxes{state="started",warm="false"}'), 0)
    assert.equal(found.get('alcove_sandbox_state_oldest_seconds{state="stopping"}'), 30)
    assert.equal(found.get('alcove_queue_length{queue="reconcile"}'), 1)
    assert.equal(found.get('alcove_queue_oldest_seconds{queue="reconcile"}'), 30)
    for (const queue of ['webhooks', 'mail', 'builds', 'images'])
      assert.equal(found.get(`alcove_queue_length{queue="${queue}"}`), 0, queue)
    const capacities = [...found].filter(([name]) => name.startsWith('alcove_runner_capacity'))
    assert.deepEqual(capacities.map(([, value]) => value).sort(), [100, 16, 4])
    assert.ok([...found].some(([name, value]) => name.startsWith('alcove_runner_promised') && value === 1))
    assert.ok([...found].some(([name, value]) => name.startsWith('alcove_runner_ready') && value === 1))
    const runners = ['ready', 'unresponsive', 'lost'].map((state) => found.get(`alcove_runners{state="${state}"}`))
    assert.deepEqual(runners, [1, 0, 0])
  })

  test('GET /metrics shows the disk space that a runner’s images use, and how much their removal has freed', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    const saying = async (message: object, isThere: boolean) => {
      runner.say({ type: 'alive', ...message })
      const said = async () =>
        (await app.database.sql`select image_storage from runners`)[0]?.['image_storage'] !== null
      while ((await said()) !== isThere) await new Promise(setImmediate)
    }
    // Simulates a runner that is newer than control: its report has fields named `newer`, which control does not know.
    const bytes = { images: 3e9, layers: 8e8, newer: 5 }
    const imageStorage = { bytes, givenBack: { layers: { pressure: 7e8, newer: 5 }, newer: { age: 5 } }, newer: 5 }
    await saying({ imageStorage, newer: 5 }, true)
    const { text } = await app.as('admin').get('/metrics')
    const samples = text.split('\n').filter((line) => line.startsWith('alcove_runner_image_') && !line.endsWith(' 0'))
    assert.deepEqual(samples, [
      'alcove_runner_image_bytes{runner="local",kind="images"} 3000000000',
      'alcove_runner_image_bytes{runner="local",kind="layers"} 800000000',
      'alcove_runner_image_given_back_bytes_total{runner="local",kind="layers",reason="pressure"} 700000000',
    ])
    await using other = await startControl()
    await using old = await connectRunner(other)
    old.say({ type: 'alive' })
    const found = [...(await scrape(other)).keys()]
    assert.ok(found.includes('alcove_runner_ready{runner="local"}'))
    assert.deepEqual(
      found.filter((name) => name.startsWith('alcove_runner_image_')),
      [],
    )
    // Simulates a runner that was replaced by an older version, which reports no disk space. The metrics must not show former
    // values of the runner.
    await saying({}, false)
  })

  test('GET /metrics counts requests by route, state changes by verb and result, and new sandboxes by source', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using runner = await connectRunner(app)
    const { id } = (await app.as('member').post('/sandbox', { name: 'box' })).body
    app.clock.advance({ seconds: 100 })
    await app.as('member').post('/sandbox/box/stop')
    await untilState(app, id, 'stopped')
    runner.behave(() => ({ type: 'fail', reason: 'no' }))
    await app.as('member').post('/sandbox/box/start')
    await untilState(app, id, 'error')
    await app.as('member').get('/sandbox/there-is-none')
    const found = await scrape(app)
    const steps = (state: string, verb: string, ended: string) =>
      found.get(`alcove_sandbox_state_seconds_count{state="${state}",verb="${verb}",ended="${ended}"}`)
    assert.deepEqual(
      [
        steps('creating', 'create', 'done'),
        steps('started', 'none', 'done'),
        steps('stopping', 'stop', 'done'),
        steps('starting', 'start', 'failed'),
      ],
      [1, 1, 1, 1],
    )
    assert.equal(found.get('alcove_sandbox_state_seconds_sum{state="started",verb="none",ended="done"}'), 100)
    assert.equal(found.get('alcove_sandbox_creates_total{source="cold"}'), 1)
    const request = (method: string, route: string, status: string) =>
      found.get(`alcove_http_request_seconds_count{method="${method}",route="${route}",status="${status}"}`)
    assert.equal(request('POST', '/sandbox', '2xx'), 1)
    assert.equal(request('GET', '/sandbox/:sandboxIdOrName', '4xx'), 1)
  })

  test('GET /metrics contains no names that users chose', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using _runner = await connectRunner(app)
    const { id } = (await app.as('member').post('/sandbox', { name: 'secret-project' })).body
    await app.as('member').get('/no-such-page-of-ours')
    const { text } = await app.as('admin').get('/metrics')
    for (const word of ['secret-project', id, 'no-such-page', 'organization-ours'])
      assert.ok(!text.includes(word), word)
  })

  test('control has every metric that the example dashboard or an alert uses', async () => {
    await using app = await startControl()
    app.app.metrics.includeProcess()
    const { text } = await app.as('admin').get('/metrics')
    const known = new Set([...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name))
    const asked = ['grafana/alcove.json', 'prometheus/alcove.rules.yaml'].flatMap((path) => {
      const text = readFileSync(join(import.meta.dirname, '../../../deploy', path), 'utf8')
      const names = [...text.matchAll(/\balcove_\w+/g)].map(([name]) => name)
      assert.ok(names.length > 5, path)
      return names
    })
    const missing = asked.filter((name) => !known.has(name) && !known.has(name.replace(/_(?:bucket|count|sum)$/, '')))
    assert.deepEqual(missing, [])
  })
})
