import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import {
  archiveReport,
  connectRunner,
  eventsOf,
  type SimulatedRunner,
  untilState,
} from '#test/control/simulated-runner.ts'

const options = { sandboxes: { createWaitSeconds: 20 } }

/** A runner whose archive store is shared with other hosts. */
const shared = { capabilities: { sharesStore: true } } as const

const setSaving = async (app: TestControl, savesStopped: boolean) =>
  assert.equal((await app.as('admin').patch('/shared-regions/local', { savesStopped })).status, 200)

const make = async (app: TestControl, body: object = {}): Promise<string> => {
  const made = await app.as('member').post('/sandbox', body)
  assert.equal(made.status, 200, made.text)
  await untilState(app, made.body.id, 'started')
  return made.body.id
}

const ask = async (app: TestControl, id: string, verb: string, state: 'started' | 'stopped' | 'archived') => {
  assert.equal((await app.as('member').post(`/sandbox/${id}/${verb}`)).status, 200)
  await untilState(app, id, state)
}

const makeStopped = async (app: TestControl): Promise<string> => {
  const id = await make(app)
  await ask(app, id, 'stop', 'stopped')
  return id
}

const look = async (app: TestControl, id: string) => (await app.as('member').get(`/sandbox/${id}`)).body

const rowOf = async ({ database }: TestControl, id: string) =>
  (
    await database.sql<{ save_state: string | null; archive_id: string | null }[]>`
    select save_state, archive_id from sandboxes where id = ${id}`
  )[0]!

const untilSaveIs = async (app: TestControl, id: string, state: 'wanted' | 'saved' | null) => {
  const deadline = performance.now() + 10_000
  while ((await rowOf(app, id)).save_state !== state) {
    assert.ok(performance.now() < deadline, `its save is not ${state}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/**
 * Waits until control has handled all earlier messages of the runner: sends a heartbeat, and waits until control has stored the
 * heartbeat.
 */
const untilHeard = async (app: TestControl, runner: SimulatedRunner) => {
  app.clock.advance({ seconds: 1 })
  runner.say({ type: 'alive' })
  const isHeard = () => app.database.sql`select from runners where last_heartbeat_at = ${app.clock.now()}`
  const deadline = performance.now() + 10_000
  while ((await isHeard()).length === 0) {
    assert.ok(performance.now() < deadline, 'the runner was not heard')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** Makes a stopped sandbox whose save is requested and not made. Returns the sandbox's id and the save's id. */
const makeWanted = async (app: TestControl, runner: SimulatedRunner) => {
  const id = await makeStopped(app)
  runner.behave(({ save }) => (save ? { type: 'silent' } : { type: 'do' }))
  await app.sweep()
  const asked = await runner.untilAsked(({ sandboxId, save }) => sandboxId === id && save !== undefined)
  return { id, saveId: asked.save!.id }
}

suite('a region that saves stopped sandboxes', () => {
  test('when a runner reports a save that needs a base, control keeps that base in the store', async () => {
    await using app = await startControl(options)
    await using runner = await connectRunner(app, shared)
    await setSaving(app, true)
    const { id, saveId } = await makeWanted(app, runner)
    const base = `base-${'b'.repeat(64)}`
    runner.say({ type: 'saved', sandboxId: id, archive: { ...archiveReport(saveId), base } })
    await untilSaveIs(app, id, 'saved')
    const rows = await app.database.sql`
      select wanted from images join sandboxes on archive_base = images.name where sandboxes.id = ${id}`
    assert.deepEqual([...rows], [{ wanted: true }])
  })

  test('a stopped sandbox is saved once; its record, listings and its timeline say when it was saved', async () => {
    await using app = await startControl(options)
    await using runner = await connectRunner(app, shared)
    await setSaving(app, true)
    const running = await make(app)
    const id = await makeStopped(app)
    assert.equal((await look(app, id)).savedAt, undefined)
    await app.sweep()
    await untilSaveIs(app, id, 'saved')
    const at = app.clock.now().toISOString()
    assert.equal((await look(app, id)).savedAt, at)
    const { items } = (await app.as('member').get('/sandbox')).body
    assert.equal(items.find((item: { id: string }) => item.id === id).savedAt, at)
    assert.equal((await look(app, id)).state, 'stopped')
    const said = (await eventsOf(app, id)).at(-1)
    assert.deepEqual(
      [said?.from_state, said?.to_state, said?.by_kind, said?.reason],
      ['stopped', 'stopped', 'runner', 'Its disk is saved: 0.0 MiB in the store.'],
    )
    await app.sweep()
    const saves = runner.asked.filter(({ save }) => save !== undefined)
    assert.deepEqual(
      saves.map(({ sandboxId, target }) => [sandboxId, target]),
      [[id, 'stopped']],
    )
    assert.equal((await look(app, running)).savedAt, undefined)
  })

  test('a region saves no sandboxes by default, and cancels requested saves when its saving is switched off', async () => {
    await using app = await startControl(options)
    await using runner = await connectRunner(app, shared)
    const early = await makeStopped(app)
    await app.sweep()
    assert.equal((await rowOf(app, early)).save_state, null)
    await setSaving(app, true)
    const { id } = await makeWanted(app, runner)
    await setSaving(app, false)
    await app.sweep()
    for (const each of [early, id]) assert.equal((await rowOf(app, each)).save_state, null)
    assert.ok(!(await app.as('runner').get('/sandbox/for-runner')).body.some((one: never) => one['assignment']['save']))
  })

  test('a requested save stays in the runner’s assignment until the runner reports the save as complete', async () => {
    await using app = await startControl(options)
    await using runner = await connectRunner(app, shared)
    await setSaving(app, true)
    const { id, saveId } = await makeWanted(app, runner)
    const listed = async () =>
      (await app.as('runner').get('/sandbox/for-runner')).body.find((one: { id: string }) => one.id === id).assignment
    assert.deepEqual((await listed()).save, { id: saveId })
    runner.say({ type: 'saved', sandboxId: id, archive: archiveReport('another') })
    await untilHeard(app, runner)
    assert.deepEqual((await listed()).save, { id: saveId })
    runner.say({ type: 'saved', sandboxId: id, archive: archiveReport(saveId) })
    await untilSaveIs(app, id, 'saved')
    assert.equal((await listed()).save, undefined)
  })

  test('a start cancels a save: late reports of this save change nothing, and the next stop makes a new save', async () => {
    await using app = await startControl(options)
    await using runner = await connectRunner(app, shared)
    await setSaving(app, true)
    const { id, saveId } = await makeWanted(app, runner)
    await ask(app, id, 'start', 'started')
    runner.say({ type: 'saved', sandboxId: id, archive: archiveReport(saveId) })
    await untilHeard(app, runner)
    assert.deepEqual([(await rowOf(app, id)).save_state, (await look(app, id)).savedAt], [null, undefined])
    await ask(app, id, 'stop', 'stopped')
    runner.say({ type: 'saved', sandboxId: id, archive: archiveReport(saveId) })
    await untilHeard(app, runner)
    assert.equal((await rowOf(app, id)).save_state, null)
    runner.behave(() => ({ type: 'do' }))
    await app.sweep()
    await untilSaveIs(app, id, 'saved')
    assert.notEqual((await rowOf(app, id)).archive_id, saveId)
    const { savedAt } = await look(app, id)
    await ask(app, id, 'start', 'started')
    assert.equal((await look(app, id)).savedAt, savedAt)
    assert.equal((await rowOf(app, id)).save_state, null)
  })

  test('an archive gets the id of the sandbox’s save, or a new id if the sandbox ran since the save', async () => {
    await using app = await startControl(options)
    await using runner = await connectRunner(app, shared)
    await setSaving(app, true)
    const id = await makeStopped(app)
    await app.sweep()
    await untilSaveIs(app, id, 'saved')
    const { archive_id: saveId } = await rowOf(app, id)
    await ask(app, id, 'archive', 'archived')
    const archived = await runner.untilAsked(({ target }) => target === 'archived')
    assert.deepEqual(archived.archive, { id: saveId })
    assert.equal((await rowOf(app, id)).save_state, null)
    await app.sweep()
    assert.equal((await rowOf(app, id)).save_state, null)
    await ask(app, id, 'start', 'started')
    await ask(app, id, 'archive', 'archived')
    const again = await runner.untilAsked(({ target }) => target === 'archived')
    assert.notEqual(again.archive?.id, saveId)
  })

  test('timeline and metric `saves` show a failed save; a delete of the sandbox also deletes the saved data', async () => {
    await using app = await startControl(options)
    await using runner = await connectRunner(app, shared)
    await setSaving(app, true)
    const { id, saveId } = await makeWanted(app, runner)
    runner.say({ type: 'unsaved', sandboxId: id, archiveId: saveId, reason: 'The archive store is full.' })
    await untilHeard(app, runner)
    assert.equal(
      (await eventsOf(app, id)).at(-1)?.reason,
      'Its disk could not be saved; Alcove will try again: The archive store is full.',
    )
    const metrics = (await app.as('admin').get('/metrics')).text
    assert.match(metrics, /alcove_queue_length\{queue="saves"\} 1/)
    assert.equal((await app.as('owner').delete(`/sandbox/${id}`)).status, 200)
    const destroyed = await runner.untilAsked(({ target }) => target === 'destroyed')
    assert.deepEqual(destroyed.archive, { id: saveId })
  })

  test('control requests no save from a runner whose archive store is only on its own host', async () => {
    await using app = await startControl(options)
    await using _runner = await connectRunner(app)
    await setSaving(app, true)
    const id = await makeStopped(app)
    await app.sweep()
    assert.equal((await rowOf(app, id)).save_state, null)
  })

  test('a failed save with a very long reason does not close the runner’s link', async () => {
    await using app = await startControl(options)
    await using runner = await connectRunner(app, shared)
    await setSaving(app, true)
    const { id, saveId } = await makeWanted(app, runner)
    runner.say({ type: 'unsaved', sandboxId: id, archiveId: saveId, reason: 'x'.repeat(20_000) })
    await untilHeard(app, runner)
    assert.match((await eventsOf(app, id)).at(-1)?.reason ?? '', /try again: xxx/)
  })

  test('an ephemeral sandbox is not saved, because it is deleted when it stops', async () => {
    await using app = await startControl(options)
    await using runner = await connectRunner(app, shared)
    await setSaving(app, true)
    const id = await make(app, { autoDeleteInterval: 0 })
    await app.as('member').post(`/sandbox/${id}/stop`)
    await untilState(app, id, 'destroyed')
    await app.sweep()
    assert.ok(!runner.asked.some(({ save }) => save !== undefined))
  })
})

suite('a lost host in a region that saves stopped sandboxes', () => {
  test('on a lost host, sandboxes saved since their last start become archived; all others become `error`', async () => {
    await using app = await startControl(options)
    await using local = await connectRunner(app, shared)
    await setSaving(app, true)
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: true })
    const { apiKey } = (await app.as('admin').post('/runners', { name: 'far' })).body
    await using far = await connectRunner(app, { ...shared, token: apiKey })
    const [saved, startedAgain, archiving] = [await makeStopped(app), await makeStopped(app), await makeStopped(app)]
    await app.sweep()
    for (const id of [saved, startedAgain, archiving]) await untilSaveIs(app, id, 'saved')
    const { savedAt } = await look(app, saved)
    await ask(app, startedAgain, 'start', 'started')
    await ask(app, startedAgain, 'stop', 'stopped')
    far.behave(() => ({ type: 'silent' }))
    await app.as('member').post(`/sandbox/${archiving}/archive`)
    await app.sweep()
    assert.equal((await rowOf(app, startedAgain)).save_state, 'wanted')
    await far.cut()
    app.clock.advance({ minutes: 1 })
    await untilHeard(app, local)
    await app.sweep()
    assert.equal((await app.as('admin').post('/runners/far/lost')).status, 200)
    for (const id of [saved, archiving]) {
      const { state, runnerId, savedAt: at } = await look(app, id)
      assert.deepEqual([state, runnerId, at], ['archived', undefined, savedAt])
    }
    assert.equal((await look(app, startedAgain)).state, 'error')
    // A start restores the save in the same way as an archive.
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: false })
    await ask(app, saved, 'start', 'started')
    const { archive_id: id } = await rowOf(app, saved)
    const restored = local.asked.findLast(({ sandboxId }) => sandboxId === saved)
    assert.deepEqual([restored?.target, restored?.archive], ['started', { id, sha256: archiveReport('').sha256 }])
    assert.equal((await look(app, saved)).runnerId, 'local')
  })

  test('`runner remove --force` leaves saved sandboxes archived instead of in `error`', async () => {
    await using app = await startControl(options)
    await using _local = await connectRunner(app, shared)
    await setSaving(app, true)
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: true })
    const { apiKey } = (await app.as('admin').post('/runners', { name: 'far' })).body
    await using _far = await connectRunner(app, { ...shared, token: apiKey })
    const id = await makeStopped(app)
    await app.sweep()
    await untilSaveIs(app, id, 'saved')
    assert.equal((await app.as('admin').delete('/runners/far?force=true')).status, 204)
    assert.equal((await look(app, id)).state, 'archived')
  })
})
