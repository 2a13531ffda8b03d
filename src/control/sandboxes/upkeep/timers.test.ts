import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { inBetween } from '#test/control/in-between.ts'
import { connectRunner, eventsOf, untilState } from '#test/control/simulated-runner.ts'

const waiting = { sandboxes: { createWaitSeconds: 20 } }

const create = async (app: TestControl, body: object = {}): Promise<string> =>
  (await app.as('member').post('/sandbox', { name: 'box', ...body })).body.id

const stateOf = async ({ database }: TestControl, id: string): Promise<string | undefined> => {
  const [row] = await database.sql<{ state: string }[]>`select state from sandboxes where id = ${id}`
  return row?.state
}

/** Waits until control has stored the runner's report that it has removed the sandbox. That report changes no state. */
const untilGone = async ({ database }: TestControl, id: string): Promise<void> => {
  for (;;) {
    const [row] = await database.sql`select gone_at from sandboxes where id = ${id} and gone_at is null`
    if (!row) return
    await new Promise(setImmediate)
  }
}

suite('the timers of a sandbox', () => {
  test('autostop stops a sandbox after `autoStopInterval` minutes without activity, and its record says why', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app, { autoStopInterval: 5 })
    app.clock.advance({ minutes: 4 })
    await app.as('member').post('/sandbox/box/last-activity')
    await app.pass({ minutes: 4, seconds: 59 })
    await app.sweep()
    assert.equal(await stateOf(app, id), 'started')
    await app.pass({ seconds: 1 })
    await app.sweep()
    await untilState(app, id, 'stopped')
    const stop = (await eventsOf(app, id)).find(({ to_state }) => to_state === 'stopping')
    assert.deepEqual(
      [stop?.by_kind, stop?.by_id, stop?.reason],
      ['timer', 'auto-stop', 'Stopped after 5 minutes without activity.'],
    )
  })

  test('a sandbox is not idle while its runner is silent or control does not run', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app, { autoStopInterval: 5 })
    const pauses = await create(app, { name: 'pauses', autoPauseInterval: 5 })
    await app.pass({ minutes: 3 })
    await runner.cut()
    app.clock.advance({ minutes: 60 })
    await app.sweep()
    assert.deepEqual([await stateOf(app, id), await stateOf(app, pauses)], ['started', 'started'])
    await runner.link()
    await app.pass({ minutes: 1, seconds: 59 })
    await app.sweep()
    assert.deepEqual([await stateOf(app, id), await stateOf(app, pauses)], ['started', 'started'])
    // The clock jumps ahead, as it does on a machine that was suspended for hours.
    app.clock.advance({ hours: 8 })
    await app.sweep()
    runner.say({ type: 'alive' })
    const silent = () => app.database.sql`select 1 from runners where state = 'unresponsive'`
    while ((await silent()).length > 0) await new Promise(setImmediate)
    await app.sweep()
    assert.deepEqual([await stateOf(app, id), await stateOf(app, pauses)], ['started', 'started'])
    await app.pass({ seconds: 1 })
    await app.sweep()
    await untilState(app, id, 'stopped')
    await untilState(app, pauses, 'paused')
  })

  test('at the end of a sandbox’s time to live, control begins to destroy it, even if its runner is silent', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app, { ttlMinutes: 5 })
    await runner.cut()
    app.clock.advance({ minutes: 5 })
    await app.sweep()
    assert.equal(await stateOf(app, id), 'destroying')
  })

  test('a sandbox whose `autoStopInterval` is 0 keeps running, no matter how long it is idle', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app, { autoStopInterval: 0 })
    app.clock.advance({ hours: 10_000 })
    runner.say({ type: 'alive' })
    await app.sweep()
    assert.equal(await stateOf(app, id), 'started')
  })

  test('a stopped sandbox is deleted after its `autoDeleteInterval`, counted from its stop', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app, { autoDeleteInterval: 10, autoStopInterval: 0 })
    app.clock.advance({ minutes: 60 })
    await app.sweep()
    assert.equal(await stateOf(app, id), 'started')
    await app.as('member').post('/sandbox/box/stop')
    await untilState(app, id, 'stopped')
    app.clock.advance({ minutes: 9 })
    await app.sweep()
    assert.equal(await stateOf(app, id), 'stopped')
    app.clock.advance({ minutes: 1 })
    await app.sweep()
    await untilState(app, id, 'destroyed')
  })

  test('a stopped sandbox is deleted immediately when its `autoDeleteInterval` is set to 0', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app)
    await app.as('member').post('/sandbox/box/stop')
    await untilState(app, id, 'stopped')
    await app.as('member').post('/sandbox/box/autodelete/0')
    await app.sweep()
    await untilState(app, id, 'destroyed')
  })

  test('a start or a longer `autoDeleteInterval`, just before an automatic delete, prevents the delete', async () => {
    const meanwhile = {
      started: "update sandboxes set state = 'starting', desired_state = 'started', version = version + 1",
      'put off': 'update sandboxes set auto_delete_interval = 60',
    }
    for (const [how, write] of Object.entries(meanwhile)) {
      await using app = await startControl(waiting)
      await using _runner = await connectRunner(app)
      const id = await create(app, { autoDeleteInterval: 10, autoStopInterval: 0 })
      await app.as('member').post('/sandbox/box/stop')
      await untilState(app, id, 'stopped')
      app.clock.advance({ minutes: 10 })
      await inBetween(app, { writing: 'sandboxes' }, app.sweep, (transaction) => transaction.unsafe(write))
      assert.equal((await eventsOf(app, id)).at(-1)?.to_state, 'stopped', how)
      const { desiredState } = (await app.as('member').get('/sandbox/box')).body
      assert.equal(desiredState, how === 'started' ? 'started' : 'stopped')
    }
  })

  test('a started, stopped or failed sandbox, or one being created, is destroyed when its time to live ends', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const started = await create(app, { name: 'started', ttlMinutes: 5 })
    const stopped = await create(app, { name: 'stopped', ttlMinutes: 5 })
    await app.as('member').post('/sandbox/stopped/stop')
    await untilState(app, stopped, 'stopped')
    const spared = await create(app, { name: 'spared', ttlMinutes: 5 })
    await app.as('member').post('/sandbox/spared/ttl/0')
    runner.behave(() => ({ type: 'fail', reason: 'no' }))
    const errored = await create(app, { name: 'errored', ttlMinutes: 5 })
    runner.behave(({ target }) => ({ type: target === 'destroyed' ? 'do' : 'silent' }))
    app.app.sandboxes.options.createWaitSeconds = 0
    const creating = await create(app, { name: 'creating', ttlMinutes: 5 })
    app.clock.advance({ minutes: 5 })
    await app.sweep()
    for (const id of [started, stopped, errored, creating]) await untilState(app, id, 'destroyed')
    assert.equal(await stateOf(app, spared), 'started')
  })

  test('a sandbox that is `creating` for too long becomes `error` with a reason, and can be recovered', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 0 } })
    await using runner = await connectRunner(app)
    runner.behave(() => ({ type: 'silent' }))
    const id = await create(app)
    app.clock.advance({ seconds: 299 })
    await app.sweep()
    assert.equal(await stateOf(app, id), 'creating')
    app.clock.advance({ seconds: 1 })
    await app.sweep()
    const { state, errorReason, recoverable } = (await app.as('member').get('/sandbox/box')).body
    assert.deepEqual([state, recoverable], ['error', true])
    assert.match(errorReason, /still creating after 300 s|has not answered/)
    runner.perform(await runner.untilAsked(({ target }) => target === 'started'))
    await untilState(app, id, 'started')
  })

  test('a deleted sandbox answers 404; control asks its runner again until the runner confirms the delete', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    await runner.cut()
    await app.as('owner').delete('/sandbox/box')
    app.clock.advance({ minutes: 2 })
    await app.sweep()
    assert.equal(await stateOf(app, id), 'destroyed')
    assert.equal((await app.as('owner').get(`/sandbox/${id}`)).status, 404)
    assert.equal(runner.has.has(id), true)
    app.clock.advance({ hours: 48 })
    await app.sweep()
    assert.equal(await stateOf(app, id), 'destroyed')
    await runner.link()
    await runner.untilAsked(({ sandboxId, target }) => sandboxId === id && target === 'destroyed')
    assert.equal(runner.has.has(id), false)
    await untilGone(app, id)
    app.clock.advance({ hours: 25 })
    await app.sweep()
    assert.equal(await stateOf(app, id), undefined)
  })

  test('the row of a destroyed sandbox is deleted after a day', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app)
    await app.as('owner').delete('/sandbox/box')
    await untilState(app, id, 'destroyed')
    app.clock.advance({ hours: 23 })
    await app.sweep()
    assert.equal(await stateOf(app, id), 'destroyed')
    app.clock.advance({ hours: 1 })
    await app.sweep()
    assert.equal(await stateOf(app, id), undefined)
  })

  test('if several sweeps run at the same time, no due timer of a sandbox is left over', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    await create(app, { autoStopInterval: 1 })
    await app.pass({ minutes: 1 })
    await Promise.all(Array.from({ length: 5 }, () => app.sweep()))
    const due = await app.database.sql`select id from sandboxes where due_at <= ${app.clock.now()}`
    assert.equal(due.length, 0)
  })
})
