// Control learns of bases from reports of copies, has them put into the store before it accepts a copy, and has them removed
// when no copy lies over them.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isImageAssignment } from '#src/runner/control-link/assignment.ts'
import type { Assignment, ImageAssignment } from '#src/wire/runner-link.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys } from '#test/control/people.ts'
import { archiveReport, connectRunner, type SimulatedRunner, untilState } from '#test/control/simulated-runner.ts'

const base = `base-${'b'.repeat(64)}`
const sha256 = 'c'.repeat(64)
const shared = { sharesStore: true } as const

const addSecond = async (app: TestControl, more: object = {}) =>
  connectRunner(app, {
    capabilities: { ...shared, cpu: 0.001 },
    token: (await app.as('admin').post('/runners', { name: 'second' })).body.apiKey,
    ...more,
  })

const until = async (what: string, holds: () => boolean | Promise<boolean>) => {
  const end = performance.now() + 20_000
  while (!(await holds())) {
    assert.ok(performance.now() < end, what)
    await new Promise(setImmediate)
  }
}

const untilAskedImage = async ({ askedImages }: SimulatedRunner, is: (asked: ImageAssignment) => boolean) => {
  const found = () => askedImages.findLast((asked) => asked.image === base && is(asked))
  await until('it is asked', () => found() !== undefined)
  return found()!
}

const listOf = async (app: TestControl, token: string = keys.runner): Promise<ImageAssignment[]> =>
  (await app.with(token).get('/runners/images')).body.filter(({ image }: ImageAssignment) => image === base)

/** Asks for an archive of a new sandbox. Returns the sandbox and a function that reports the archive. */
const archiveBox = async (app: TestControl, runner: SimulatedRunner) => {
  const { body: box } = await app.as('owner').post('/sandbox', { name: 'box' })
  await untilState(app, box.id, 'started')
  runner.behave(({ target }: Assignment) => ({ type: target === 'archived' ? 'silent' : 'do' }))
  const asked = await app.as('owner').post('/sandbox/box/archive')
  assert.equal(asked.status, 200, asked.text)
  const { generation, archive } = await runner.untilAsked(({ target }) => target === 'archived')
  const report = () =>
    runner.report({
      ...{ sandboxId: box.id, generation, state: 'archived' as const },
      archive: { ...archiveReport(archive!.id), base },
    })
  const stateOf = async () => (await app.as('owner').get(`/sandbox/${box.id}`)).body.state
  return { box, report, stateOf }
}

const stored = (runner: SimulatedRunner) =>
  runner.say({ type: 'image', report: { image: base, state: 'present', stored: { sha256 } } })

suite('bases in the store', () => {
  test('a sandbox is archived only when its base is in the store too', async () => {
    await using app = await startControl()
    await using first = await connectRunner(app, { capabilities: shared })
    await using second = await addSecond(app)
    const { box, report, stateOf } = await archiveBox(app, first)
    report()
    const asked = await untilAskedImage(first, ({ toStore }) => toStore === true)
    assert.deepEqual([asked.target, asked.source, isImageAssignment(asked)], ['present', undefined, true])
    assert.equal(await stateOf(), 'archiving')
    const archives = () => first.asked.filter(({ target }) => target === 'archived').length
    const before = archives()
    stored(first)
    // Control asks for the report again at once, and not with the next list.
    await until('the archive is asked for again', () => archives() > before)
    report()
    await untilState(app, box.id, 'archived')
    // No runner brings a base before it restores a disk over it.
    assert.deepEqual(second.askedImages, [])
  })

  test('a runner whose store is on its own disk archives at once, and stores no base', async () => {
    await using app = await startControl()
    await using first = await connectRunner(app)
    const { box, report } = await archiveBox(app, first)
    report()
    await untilState(app, box.id, 'archived')
    assert.deepEqual([first.askedImages, await listOf(app)], [[], []])
  })

  test('a base stays while a copy or a runner needs it; then every runner removes it from the store', async () => {
    await using app = await startControl()
    await using first = await connectRunner(app, { capabilities: shared })
    const token = (await app.as('admin').post('/runners', { name: 'second' })).body.apiKey
    await using second = await connectRunner(app, { capabilities: { ...shared, cpu: 0.001 }, token })
    const { box, report } = await archiveBox(app, first)
    report()
    await untilAskedImage(first, ({ toStore }) => toStore === true)
    stored(first)
    await until('it is off the list', async () => (await listOf(app)).length === 0)
    report()
    await untilState(app, box.id, 'archived')
    const look = async () => {
      app.clock.advance({ hours: 2 })
      await app.sweep()
    }
    await first.link(['default'])
    await look()
    assert.deepEqual(await listOf(app), [], 'the archived disk needs it')
    await first.link(['default', base])
    await look()
    await app.as('owner').delete('/sandbox/box')
    await untilState(app, box.id, 'destroyed')
    await look()
    assert.deepEqual(await listOf(app), [], 'the first runner has it')
    await first.link(['default'])
    await look()
    const gone = { image: base, target: 'absent', isStored: true, maxGiB: 1 }
    for (const each of [keys.runner, token]) {
      await until('it is on the list', async () => (await listOf(app, each)).length > 0)
      assert.deepEqual(await listOf(app, each), [gone])
    }
    second.say({ type: 'image', report: { image: base, state: 'absent' } })
    await until('it is off the list', async () => (await listOf(app)).length === 0)
  })

  test('a copy that is reported while its base is being removed has the base put into the store again', async () => {
    await using app = await startControl()
    await using first = await connectRunner(app, { capabilities: shared })
    await using _second = await addSecond(app)
    const { box, report, stateOf } = await archiveBox(app, first)
    report()
    await untilAskedImage(first, ({ toStore }) => toStore === true)
    stored(first)
    await until('it is off the list', async () => (await listOf(app)).length === 0)
    first.say({ type: 'image', report: { image: base, state: 'absent' } })
    report()
    await until('it is asked for again', async () => (await listOf(app))[0]?.toStore === true)
    assert.equal(await stateOf(), 'archiving')
    stored(first)
    await until('it is off the list', async () => (await listOf(app)).length === 0)
    report()
    await untilState(app, box.id, 'archived')
  })

  test('a snapshot in the store keeps its base there', async () => {
    await using app = await startControl()
    await using first = await connectRunner(app, { capabilities: shared })
    await using second = await addSecond(app)
    const { body: box } = await app.as('owner').post('/sandbox', { name: 'box' })
    await untilState(app, box.id, 'started')
    await app.as('owner').post('/sandbox/box/snapshot', { name: 'made' })
    const snapshot = () => first.askedImages.find(({ source }) => source?.kind === 'sandbox')
    await until('a snapshot is asked for', () => snapshot() !== undefined)
    const { image } = snapshot()!
    first.say({ type: 'image', report: { image, state: 'present' } })
    await untilState(app, box.id, 'started')
    first.say({ type: 'image', report: { image, state: 'present', stored: { sha256, base } } })
    await until('the other runner is asked', () => second.askedImages.some((asked) => asked.image === image))
    await first.link(['default', image])
    app.clock.advance({ hours: 2 })
    await app.sweep()
    assert.deepEqual(await listOf(app), [])
    await app.as('owner').delete('/snapshots/made')
    for (const runner of [first, second]) runner.say({ type: 'image', report: { image, state: 'absent' } })
    await first.link(['default'])
    app.clock.advance({ hours: 2 })
    await app.sweep()
    await until('it is to be removed', async () => (await listOf(app))[0]?.target === 'absent')
  })
})
