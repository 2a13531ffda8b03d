import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys } from '#test/control/people.ts'
import {
  connectRunner,
  eventsOf,
  type RunnerOptions,
  type SimulatedRunner,
  untilState,
} from '#test/control/simulated-runner.ts'

const options = { sandboxes: { createWaitSeconds: 20, leaseSeconds: 120 } }

/** Advances the clock in steps shorter than `leaseSeconds`. The runners in `heard` send a heartbeat after each step. */
const pass = async (app: TestControl, minutes: number, heard: Record<string, SimulatedRunner>) => {
  for (let seconds = 0; seconds < minutes * 60; seconds += 100) {
    app.clock.advance({ seconds: 100 })
    for (const [id, runner] of Object.entries(heard)) await hear(app, id, runner)
    await app.sweep()
  }
}

const hear = async ({ clock, database }: TestControl, id: string, runner: SimulatedRunner) => {
  runner.say({ type: 'alive' })
  const isHeard = () => database.sql`select from runners where id = ${id} and last_heartbeat_at = ${clock.now()}`
  const deadline = performance.now() + 10_000
  while ((await isHeard()).length === 0) {
    assert.ok(performance.now() < deadline, `${id} was not heard`)
    await new Promise(setImmediate)
  }
}

const join = async (app: TestControl, name: string, given: RunnerOptions = {}) => {
  const { body } = await app.as('admin').post('/runners', { name })
  return await connectRunner(app, { ...given, token: body.apiKey })
}

const viewOf = async (app: TestControl, id: string) => (await app.as('admin').get(`/runners/${id}`)).body

/** Makes a sandbox on the runner "far". */
const makeOnFar = async (app: TestControl, body: object = {}): Promise<string> => {
  await app.as('admin').patch('/runners/local/scheduling', { unschedulable: true })
  const made = await app.as('member').post('/sandbox', body)
  assert.equal(made.status, 200, made.text)
  await app.as('admin').patch('/runners/local/scheduling', { unschedulable: false })
  await untilState(app, made.body.id, 'started')
  return made.body.id
}

const look = async (app: TestControl, id: string) => (await app.as('member').get(`/sandbox/${id}`)).body

/** Stops and archives a sandbox. Then begins to restore it on the runner, which never finishes the restore. */
const beginRestore = async (app: TestControl, far: SimulatedRunner, id: string) => {
  await app.as('member').post(`/sandbox/${id}/archive`)
  await untilState(app, id, 'archived')
  far.behave(() => ({ type: 'silent' }))
  await app.as('admin').patch('/runners/local/scheduling', { unschedulable: true })
  assert.equal((await app.as('member').post(`/sandbox/${id}/start`)).status, 200)
  await app.as('admin').patch('/runners/local/scheduling', { unschedulable: false })
  return await far.untilAsked(({ sandboxId, archive }) => sandboxId === id && archive?.sha256 !== undefined)
}

suite('a silent host', () => {
  test('the sandboxes of a silent host keep their state; their timelines record the silence once', async () => {
    await using app = await startControl(options)
    await using local = await connectRunner(app)
    await using far = await join(app, 'far')
    const id = await makeOnFar(app)
    const heardAt = app.clock.now().toISOString()
    await far.cut()
    await pass(app, 5, { local })
    const { state, errorReason } = await look(app, id)
    assert.equal(state, 'started')
    assert.match(errorReason, new RegExp(`not answered since ${heardAt}`))
    const said = (await eventsOf(app, id)).filter(({ by_id }) => by_id === 'silent-runner')
    assert.equal(said.length, 1)
    assert.match(said[0]?.reason ?? '', /^Its host does not answer\. Last heard: /)
    const question = {
      sandboxIdOrName: id,
      credentials: [{ kind: 'bearer', token: keys.owner }],
      countsAsActivity: false,
    }
    assert.equal((await app.as('proxy').post('/proxy/access', question)).body.silentSince, heardAt)
    const view = await viewOf(app, 'far')
    assert.deepEqual([view.state, view.silentSince, view.lostAt], ['unresponsive', heardAt, undefined])
  })
})

suite('a lost host', () => {
  test('after ten minutes of silence, a host’s sandboxes are in state `error` and cannot be recovered (409)', async () => {
    await using app = await startControl(options)
    await using local = await connectRunner(app)
    await using far = await join(app, 'far')
    const [started, stopped] = [await makeOnFar(app), await makeOnFar(app)]
    await app.as('member').post(`/sandbox/${stopped}/stop`)
    await untilState(app, stopped, 'stopped')
    await far.cut()
    await pass(app, 8, { local })
    assert.equal((await look(app, started)).state, 'started')
    await pass(app, 5, { local })
    for (const id of [started, stopped]) {
      const { state, errorReason, recoverable, runnerId } = await look(app, id)
      assert.deepEqual([state, recoverable, runnerId], ['error', true, 'far'])
      assert.match(errorReason, /^Its host "far" has not answered since .* and is given up\./)
      const refused = await app.as('member').post(`/sandbox/${id}/recover`)
      assert.equal(refused.status, 409)
      assert.match(refused.body.message, /The sandbox can be recovered when the host is back/)
    }
    const { lostAt, givenUp, leftovers, state } = await viewOf(app, 'far')
    assert.deepEqual([typeof lostAt, givenUp, leftovers, state], ['string', 2, 0, 'unresponsive'])
  })

  test('when a lost host connects again, it is ready, and its intact sandboxes leave the state `error`', async () => {
    await using app = await startControl(options)
    await using local = await connectRunner(app)
    await using far = await join(app, 'far')
    const [started, ended] = [await makeOnFar(app), await makeOnFar(app)]
    await far.cut()
    await pass(app, 13, { local })
    // The host was restarted: one sandbox runs, and the other has ended.
    far.behave(({ sandboxId }) => (sandboxId === ended ? { type: 'silent' } : { type: 'do' }))
    await far.link()
    await untilState(app, started, 'started')
    const { state, lostAt, silentSince } = await viewOf(app, 'far')
    assert.deepEqual([state, lostAt, silentSince], ['ready', undefined, undefined])
    far.behave(() => ({ type: 'do' }))
    assert.equal((await look(app, ended)).state, 'error')
    assert.equal((await app.as('member').post(`/sandbox/${ended}/recover`)).status, 200)
    await untilState(app, ended, 'started')
  })

  test('a sandbox with a copy in the store can start elsewhere; the lost host then destroys the old disk', async () => {
    await using app = await startControl(options)
    await using local = await connectRunner(app)
    await using far = await join(app, 'far')
    const id = await makeOnFar(app)
    const old = await beginRestore(app, far, id)
    await far.cut()
    await pass(app, 13, { local })
    assert.deepEqual([(await look(app, id)).state, (await look(app, id)).runnerId], ['archived', undefined])
    assert.equal((await viewOf(app, 'far')).leftovers, 1)
    await app.as('member').post(`/sandbox/${id}/start`)
    await untilState(app, id, 'started')
    assert.equal((await look(app, id)).runnerId, 'local')
    await app.database.sql`update sandboxes set env = '{"TOKEN": "set-elsewhere"}' where id = ${id}`
    // Control refuses this report of the lost host, because the sandbox is on another host now.
    const asked = far.asked.length
    far.behave(({ target }) => (target === 'destroyed' ? { type: 'silent' } : { type: 'do' }))
    await far.link()
    far.report({ sandboxId: id, generation: old.generation, state: 'started' })
    const removal = await far.untilAsked(({ sandboxId, target }) => sandboxId === id && target === 'destroyed')
    assert.ok(removal.generation > old.generation)
    assert.equal(removal.archive, undefined)
    // The lost host gets only the order to destroy the sandbox, without the variables that were set later.
    assert.doesNotMatch(JSON.stringify(removal), /set-elsewhere/)
    assert.ok(far.asked.slice(asked).every(({ target }) => target === 'destroyed'))
    assert.deepEqual([(await look(app, id)).state, (await look(app, id)).runnerId], ['started', 'local'])
    far.perform(removal)
    const deadline = performance.now() + 10_000
    while ((await viewOf(app, 'far')).leftovers > 0) assert.ok(performance.now() < deadline)
    assert.equal((await look(app, id)).state, 'started')
  })

  test('a sandbox is never started on a host that has an older disk of the sandbox', async () => {
    await using app = await startControl(options)
    await using local = await connectRunner(app)
    await using far = await join(app, 'far')
    const id = await makeOnFar(app)
    await beginRestore(app, far, id)
    await far.cut()
    await pass(app, 13, { local })
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: true })
    await far.link()
    assert.equal((await app.as('member').post(`/sandbox/${id}/start`)).status, 503)
    far.behave(() => ({ type: 'do' }))
    await far.takeList()
    const deadline = performance.now() + 10_000
    while ((await viewOf(app, 'far')).leftovers > 0) assert.ok(performance.now() < deadline)
    assert.equal((await app.as('member').post(`/sandbox/${id}/start`)).status, 200)
    await untilState(app, id, 'started')
    assert.equal((await look(app, id)).runnerId, 'far')
  })

  test('if a sandbox of a lost host is deleted, the host destroys the sandbox when the host is back', async () => {
    await using app = await startControl(options)
    await using local = await connectRunner(app)
    await using far = await join(app, 'far')
    const id = await makeOnFar(app)
    await far.cut()
    await pass(app, 13, { local })
    assert.equal((await app.as('owner').delete(`/sandbox/${id}`)).status, 200)
    await pass(app, 3, { local })
    await untilState(app, id, 'destroyed')
    await far.link()
    await far.untilAsked(({ sandboxId, target }) => sandboxId === id && target === 'destroyed')
    assert.equal(far.has.has(id), false)
  })

  test('if control is killed while it gives up a host’s sandboxes, control continues after its next start', async () => {
    await using app = await startControl(options)
    await using local = await connectRunner(app)
    await using far = await join(app, 'far')
    const id = await makeOnFar(app)
    await far.cut()
    await pass(app, 4, { local })
    // Simulates a kill of control. Control has written that the runner is lost, but has not changed any sandbox yet.
    await app.database.sql`update runners set lost_at = ${app.clock.now()} where id = 'far'`
    await pass(app, 1, { local })
    assert.equal((await look(app, id)).state, 'error')
  })

  test('volumes on the disk of a lost host stay there, and can be used again when the host is back', async () => {
    await using app = await startControl(options)
    await using local = await connectRunner(app)
    await using far = await join(app, 'far')
    const volume = (await app.as('owner').post('/volumes', { name: 'kept' })).body
    const id = await makeOnFar(app, { volumes: [{ volumeId: volume.id, mountPath: '/kept' }] })
    await far.cut()
    await pass(app, 13, { local })
    assert.equal((await look(app, id)).state, 'error')
    assert.equal((await app.as('owner').get(`/volumes/${volume.id}`)).body.state, 'ready')
    const mounting = { volumes: [{ volumeId: volume.id, mountPath: '/kept' }] }
    const refused = await app.as('member').post('/sandbox', mounting)
    assert.equal(refused.status, 503)
    assert.match(refused.body.message, /The volume "kept" is on the runner "far", which is not ready/)
    await far.link()
    assert.equal((await app.as('member').post('/sandbox', mounting)).status, 200)
  })
})

suite('silence that is not the fault of the host', () => {
  test('while most hosts of a region are silent, no host becomes lost, and this silence is not counted later', async () => {
    await using app = await startControl(options)
    await using local = await connectRunner(app)
    await using far = await join(app, 'far')
    await using third = await join(app, 'third')
    const id = await makeOnFar(app)
    await third.cut()
    await far.cut()
    await pass(app, 30, { local })
    assert.equal((await viewOf(app, 'far')).lostAt, undefined)
    // Now control receives heartbeats of most runners of the region, so it begins to measure how long "far" is silent.
    await third.link()
    await pass(app, 8, { local, third })
    assert.notEqual((await look(app, id)).state, 'error')
    await pass(app, 5, { local, third })
    assert.equal((await look(app, id)).state, 'error')
  })

  test('time in which control did not run is not counted as silence of a host', async () => {
    await using app = await startControl(options)
    await using local = await connectRunner(app)
    await using far = await join(app, 'far')
    const id = await makeOnFar(app)
    await pass(app, 3, { local, far })
    await far.cut()
    app.clock.advance({ minutes: 60 })
    await pass(app, 8, { local })
    assert.equal((await look(app, id)).state, 'started')
    await pass(app, 5, { local })
    assert.equal((await look(app, id)).state, 'error')
  })

  test('with ALCOVE_LOST_AFTER_MINUTES=0, a host is lost only if the operator gives up the host', async () => {
    await using app = await startControl({ ...options, settings: { lostAfterMinutes: 0 } })
    await using local = await connectRunner(app)
    await using far = await join(app, 'far')
    const id = await makeOnFar(app)
    await far.cut()
    await pass(app, 60, { local })
    assert.equal((await look(app, id)).state, 'started')
    const { status, body } = await app.as('admin').post('/runners/far/lost')
    assert.deepEqual([status, body.givenUp], [200, 1])
    assert.equal((await look(app, id)).state, 'error')
  })
})

suite('POST /runners/{runnerId}/lost', () => {
  test('giving up a host answers 409 if it is not silent, 404 if unknown, 403 to owners, 401 without a key', async () => {
    await using app = await startControl(options)
    await using _local = await connectRunner(app)
    const id = (await app.as('member').post('/sandbox', {})).body.id
    const refused = await app.as('admin').post('/runners/local/lost')
    assert.equal(refused.status, 409)
    assert.match(refused.body.message, /Runner "local" is not silent\../)
    assert.equal((await look(app, id)).state, 'started')
    assert.equal((await app.as('admin').post('/runners/none/lost')).status, 404)
    assert.equal((await app.as('owner').post('/runners/local/lost')).status, 403)
    assert.equal((await app.as('nobody').post('/runners/local/lost')).status, 401)
  })
})
