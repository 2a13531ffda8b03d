// Tests bases in the store. A runner that uploads a disk uploads its base too, and names the base in its report.
// Control tells runners to delete a base from the store when no disk in the store needs it and no runner has a copy.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
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

const listOf = async (app: TestControl, token: string = keys.runner): Promise<ImageAssignment[]> =>
  (await app.with(token).get('/runners/images')).body.filter(({ image }: ImageAssignment) => image === base)

/** Makes the sweep check the bases in the store. Advances the clock first: a base is checked at most once an hour. */
const look = async (app: TestControl) => {
  app.clock.advance({ hours: 2 })
  await app.sweep()
}

/**
 * Creates a sandbox and calls its archive endpoint. Returns the sandbox, and a function with which the runner reports
 * the archive.
 */
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
  return { box, report }
}

suite('bases in the store', () => {
  test('a base is deleted from the store only when no archive needs the base and no runner has the base', async () => {
    await using app = await startControl()
    await using first = await connectRunner(app, { capabilities: shared })
    const token = (await app.as('admin').post('/runners', { name: 'second' })).body.apiKey
    await using second = await connectRunner(app, { capabilities: { ...shared, cpu: 0.001 }, token })
    const { box, report } = await archiveBox(app, first)
    report()
    await untilState(app, box.id, 'archived')
    await first.link(['default'])
    await look(app)
    // Control never tells a runner to fetch a base. A runner fetches a base when it restores a disk that needs the base.
    assert.deepEqual([await listOf(app), second.askedImages], [[], []], 'the archived disk needs it')
    await first.link(['default', base])
    await app.as('owner').delete('/sandbox/box')
    await untilState(app, box.id, 'destroyed')
    await look(app)
    assert.deepEqual(await listOf(app), [], 'the first runner has it')
    await first.link(['default'])
    await app.sweep()
    assert.deepEqual(await listOf(app), [], 'it was looked at less than an hour ago')
    await look(app)
    const gone = { image: base, target: 'absent', isStored: true, maxGiB: 1 }
    for (const each of [keys.runner, token]) assert.deepEqual(await listOf(app, each), [gone])
    second.say({ type: 'image', report: { image: base, state: 'absent' } })
    await until('it is off the list', async () => (await listOf(app)).length === 0)
  })

  test('a base that waits for its deletion from the store stays if a runner reports an archive that needs it', async () => {
    await using app = await startControl()
    await using first = await connectRunner(app, { capabilities: shared })
    const { box, report } = await archiveBox(app, first)
    report()
    await untilState(app, box.id, 'archived')
    await app.database.sql`update sandboxes set state = 'archiving', archive_base = null where id = ${box.id}`
    await app.database.sql`update images set wanted = false where name = ${base}`
    assert.equal((await listOf(app)).length, 1)
    report()
    await untilState(app, box.id, 'archived')
    assert.deepEqual(await listOf(app), [])
    const { length } = first.askedImages
    first.say({ type: 'image', report: { image: base, state: 'absent' } })
    await first.link(['default'])
    assert.equal(first.askedImages.length, length)
  })

  test('if a runner’s store is on the runner’s own disk, control keeps no record of the bases in the store', async () => {
    await using app = await startControl()
    await using first = await connectRunner(app)
    const { box, report } = await archiveBox(app, first)
    report()
    await untilState(app, box.id, 'archived')
    assert.deepEqual([...(await app.database.sql`select from images where name = ${base}`)], [])
  })

  test('a base stays in the store while a snapshot in the store needs it', async () => {
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
    await look(app)
    assert.deepEqual(await listOf(app), [])
    await app.as('owner').delete('/snapshots/made')
    for (const runner of [first, second]) runner.say({ type: 'image', report: { image, state: 'absent' } })
    await first.link(['default'])
    await look(app)
    await until('it is to be removed', async () => (await listOf(app))[0]?.target === 'absent')
  })

  test('a base that an archive needs stays in the store, even if a runner reports an error about the base', async () => {
    await using app = await startControl()
    await using first = await connectRunner(app, { capabilities: shared })
    const { box, report } = await archiveBox(app, first)
    report()
    await untilState(app, box.id, 'archived')
    // A runner reports this error if a control process of an earlier version told the runner to make the base.
    first.say({ type: 'image', report: { image: base, state: 'error', errorReason: 'no such source' } })
    await app.database.sql`update images set wanted = false where name = ${base}`
    await first.link(['default'])
    await look(app)
    assert.deepEqual(await listOf(app), [])
  })

  test('if a runner reports an archive or save that control did not request, control records no base', async () => {
    await using app = await startControl()
    await using first = await connectRunner(app, { capabilities: shared })
    const { box, report } = await archiveBox(app, first)
    const other = { ...archiveReport('00000000-0000-4000-8000-000000000000'), base: `base-${'d'.repeat(64)}` }
    first.say({ type: 'saved', sandboxId: box.id, archive: other })
    first.report({ sandboxId: box.id, generation: 0, state: 'archived', archive: other })
    report()
    await untilState(app, box.id, 'archived')
    const names = await app.database.sql`select name from images where source ->> 'kind' = 'base'`
    assert.deepEqual([...names], [{ name: base }])
  })
})
