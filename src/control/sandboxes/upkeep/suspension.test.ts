import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { connectRunner, eventsOf, untilState } from '#test/control/simulated-runner.ts'

/** The tests move the clock. With this long `leaseSeconds`, the runner is never silent. */
const options = { sandboxes: { createWaitSeconds: 20, momentMilliseconds: 20_000, leaseSeconds: 1_000_000 } }

const create = async (app: TestControl, name: string): Promise<string> => {
  const reply = await app.as('owner').post('/sandbox', { name })
  assert.equal(reply.status, 200, reply.text)
  return reply.body.id
}

const suspend = async (app: TestControl, body: object = {}) => {
  const reply = await app.as('admin').post(`/organizations/${organizations.ours}/suspend`, body)
  assert.equal(reply.status, 204, reply.text)
}

const stateOf = async (app: TestControl, name: string) => (await app.as('viewer').get(`/sandbox/${name}`)).body.state

suite('a suspended organization', () => {
  test('a suspended organization gets 403 for each call that starts something; reads, stops and deletes work', async () => {
    await using app = await startControl(options)
    await using runner = await connectRunner(app)
    const [paused, stopped] = [await create(app, 'paused'), await create(app, 'stopped')]
    await create(app, 'running')
    await app.as('owner').post('/sandbox/paused/pause')
    await app.as('owner').post('/sandbox/stopped/stop')
    await untilState(app, paused, 'paused')
    await untilState(app, stopped, 'stopped')
    runner.behave(({ target }) => (target === 'started' ? { type: 'fail', reason: 'no' } : { type: 'do' }))
    await create(app, 'broken')
    runner.behave(() => ({ type: 'do' }))
    await suspend(app)
    const refused: [path: string, body?: object][] = [
      ['/sandbox', {}],
      ['/sandbox/stopped/start'],
      ['/sandbox/paused/start'],
      ['/sandbox/running/resize', { cpu: 2 }],
      ['/sandbox/running/fork', {}],
      ['/sandbox/running/snapshot', { name: 's' }],
      ['/sandbox/broken/recover'],
      ['/snapshots', { name: 's', imageName: 'alpine:3' }],
      ['/snapshots/s/activate'],
      ['/warm-pools', { snapshot: 'default', pool: 1 }],
    ]
    for (const [path, body] of refused) {
      const { status, body: said } = await app.as('owner').post(path, body)
      assert.deepEqual([status, said.message], [403, 'This organization is suspended.'], path)
    }
    assert.equal((await app.as('owner').get('/sandbox')).body.items.length, 4)
    assert.equal((await app.as('owner').post('/sandbox/running/stop')).status, 200)
    assert.equal((await app.as('owner').delete('/sandbox/stopped')).status, 200)
  })

  test('running sandboxes of a suspended organization are stopped after the grace period, and not before', async () => {
    await using app = await startControl(options)
    await using _runner = await connectRunner(app)
    const [running, paused] = [await create(app, 'running'), await create(app, 'paused')]
    for (const name of ['running', 'paused']) await app.as('owner').post(`/sandbox/${name}/autostop/0`)
    await app.as('owner').post('/sandbox/paused/pause')
    await untilState(app, paused, 'paused')
    const { body: others } = await app.as('stranger').post('/sandbox', { autoStopInterval: 0 })
    await suspend(app, { suspensionCleanupGracePeriodHours: 2 })
    app.clock.advance({ seconds: 7199 })
    await app.sweep()
    assert.deepEqual([await stateOf(app, 'running'), await stateOf(app, 'paused')], ['started', 'paused'])
    app.clock.advance({ seconds: 1 })
    await app.sweep()
    await untilState(app, running, 'stopped')
    await untilState(app, paused, 'stopped')
    const stop = (await eventsOf(app, running)).find(({ to_state }) => to_state === 'stopping')
    assert.deepEqual([stop?.by_id, stop?.reason], ['suspension', 'Its organization is suspended.'])
    assert.equal((await app.as('stranger').get(`/sandbox/${others.id}`)).body.state, 'started')
  })

  test('an organization whose suspension has ended keeps its sandboxes running, and can make new ones', async () => {
    await using app = await startControl(options)
    await using _runner = await connectRunner(app)
    await create(app, 'running')
    await app.as('owner').post('/sandbox/running/autostop/0')
    const until = new Date(app.clock.now().getTime() + 3_600_000)
    await suspend(app, { until: until.toISOString(), suspensionCleanupGracePeriodHours: 1 })
    app.clock.advance({ hours: 1 })
    await app.sweep()
    assert.equal(await stateOf(app, 'running'), 'started')
    await create(app, 'another')
  })

  test('if a sandbox’s image becomes ready while its organization is suspended, the sandbox does not start', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    const build = { name: 'built', buildInfo: { dockerfileContent: 'FROM alpine' } }
    const { body: built } = await app.as('owner').post('/sandbox', build)
    await suspend(app)
    const config = { entrypoint: [], env: {}, user: '', workdir: '/' }
    runner.say({ type: 'image', report: { image: built.buildInfo.snapshotRef, state: 'present', config } })
    const isThere = async () => (await app.database.sql`select 1 from runners where cardinality(images) > 1`).length > 0
    while (!(await isThere())) await new Promise(setImmediate)
    await app.sweep()
    assert.equal(await stateOf(app, 'built'), 'pending_build')
    await app.as('admin').post(`/organizations/${organizations.ours}/unsuspend`)
    await app.sweep()
    await untilState(app, built.id, 'started')
  })
})
