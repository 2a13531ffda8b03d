import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { create, get, post } from '#test/control/box.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys, organizations } from '#test/control/people.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'

const waiting = { sandboxes: { createWaitSeconds: 20 } }

suite('POST /sandbox/:sandboxIdOrName/snapshot', () => {
  const snapshotOf = async (app: TestControl, name = 'made') => (await app.as('member').get(`/snapshots/${name}`)).body

  test('a sandbox is not idle while its snapshot is made', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app, { autoStopInterval: 15 })
    await app.pass({ minutes: 14 })
    await post(app, 'snapshot', { name: 'made' })
    while (runner.askedImages.length === 0) await new Promise(setImmediate)
    await app.pass({ minutes: 3 })
    runner.say({ type: 'image', report: { image: runner.askedImages.at(-1)!.image, state: 'present' } })
    await untilState(app, id, 'started')
    await app.sweep()
    assert.equal((await get(app, id)).state, 'started')
  })

  test('POST /sandbox/:sandboxIdOrName/snapshot works for a started, stopped or paused sandbox, which keeps its state', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    runner.behaveWithImages(() => 'do')
    const id = await create(app)
    for (const before of ['started', 'stopped', 'paused'] as const) {
      if (before === 'stopped') await post(app, 'stop')
      if (before === 'paused') {
        await post(app, 'start')
        await untilState(app, id, 'started')
        await post(app, 'pause')
      }
      await untilState(app, id, before)
      const reply = await post(app, 'snapshot', { name: `made-${before}` })
      assert.deepEqual([reply.status, reply.body.state, reply.body.desiredState], [200, 'snapshotting', before])
      await untilState(app, id, before)
      const { state, sourceSandboxId, mem } = await snapshotOf(app, `made-${before}`)
      assert.deepEqual([state, sourceSandboxId, mem], ['active', id, 1])
    }
    const made = await app.as('member').post('/sandbox', { snapshot: 'made-started' })
    assert.deepEqual([made.status, made.body.state], [200, 'started'])
    // The snapshot has the sandbox's user, even if the base image has a different user.
    assert.equal(made.body.user, (await get(app, id)).user)
    assert.match(runner.asked.at(-1)?.image ?? '', /^snap-/)
  })

  test('POST …/snapshot makes one snapshot per Idempotency-Key; the same key with another name gets 422', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    runner.behaveWithImages(() => 'do')
    const id = await create(app)
    const again = (name: string) =>
      app.as('member').post('/sandbox/box/snapshot', { name }, { headers: { 'idempotency-key': 'k' } })
    const replies = await Promise.all([1, 2, 3].map(() => again('made')))
    await untilState(app, id, 'started')
    replies.push(await again('made'))
    assert.deepEqual(
      replies.map(({ status, body }) => [status, body.id]),
      replies.map(() => [200, id]),
    )
    assert.equal((await get(app, id)).state, 'started')
    assert.equal((await again('other')).status, 422)
    // A repeated request gets the sandbox in its present state, which is `destroying` here.
    runner.behave(() => ({ type: 'silent' }))
    assert.equal((await app.as('owner').delete(`/sandbox/${id}`)).status, 200)
    const late = await again('made')
    assert.deepEqual([late.status, late.body.id, late.body.state], [200, id, 'destroying'])
  })

  test('if a runner loses a snapshot’s image, control tells the runner not to copy the sandbox again', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const sourceOf = async () => {
      const images = (await app.with(keys.runner).get('/runners/images')).body
      return images.map(({ source }: { source: object }) => source)
    }
    const id = await create(app)
    await post(app, 'snapshot', { name: 'made' })
    assert.deepEqual(await sourceOf(), [{ kind: 'sandbox', sandboxId: id }])
    while (runner.askedImages.length === 0) await new Promise(setImmediate)
    const { image } = runner.askedImages[0]!
    runner.say({ type: 'image', report: { image, state: 'present' } })
    await untilState(app, id, 'started')
    assert.deepEqual(await sourceOf(), [undefined])
    runner.say({ type: 'image', report: { image, state: 'absent' } })
    while ((await sourceOf())[0] === undefined) await new Promise(setImmediate)
    assert.deepEqual(await sourceOf(), [{ kind: 'sandbox', sandboxId: id, isMade: true }])
  })

  test('if a snapshot of a sandbox fails, the sandbox gets its state back, and the snapshot has the reason', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    runner.behaveWithImages(() => 'fail')
    const id = await create(app)
    await post(app, 'snapshot', { name: 'made' })
    await untilState(app, id, 'started')
    const { state, errorReason } = await snapshotOf(app)
    assert.deepEqual([state, errorReason], ['error', 'The disk is full.'])
  })

  test('a report about an older snapshot does not end the sandbox’s state `snapshotting`', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    runner.behaveWithImages(() => 'do')
    const id = await create(app)
    await post(app, 'snapshot', { name: 'first' })
    await untilState(app, id, 'started')
    const first = runner.askedImages.at(-1)!.image
    runner.behaveWithImages(({ target }) => (target === 'absent' ? 'do' : 'silent'))
    await post(app, 'snapshot', { name: 'second' })
    runner.say({ type: 'image', report: { image: first, state: 'present' } })
    runner.say({ type: 'image-progress', image: first, step: 'heard', percent: 1 })
    // Waits until the reported progress has been stored.
    while ((await snapshotOf(app, 'first')).progress?.step !== 'heard') await new Promise(setImmediate)
    assert.equal((await get(app, id)).state, 'snapshotting')
    assert.equal((await app.as('owner').delete('/snapshots/second')).status, 200)
    await untilState(app, id, 'started')
  })

  test('a sweep repeats a lost assignment to make a snapshot of a sandbox', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    await post(app, 'snapshot', { name: 'made' })
    while (runner.askedImages.length === 0) await new Promise(setImmediate)
    runner.behaveWithImages(() => 'do')
    app.clock.advance({ seconds: 6 })
    await app.sweep()
    await untilState(app, id, 'started')
  })

  test('a delete during a sandbox’s snapshot destroys the sandbox and ends the snapshot', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    await post(app, 'snapshot', { name: 'made' })
    await app.as('owner').delete('/sandbox/box')
    await untilState(app, id, 'destroyed')
    while (runner.askedImages.length === 0) await new Promise(setImmediate)
    const { image } = runner.askedImages[0]!
    runner.say({ type: 'image', report: { image, state: 'error', errorReason: 'The sandbox is gone.' } })
    while ((await snapshotOf(app)).state === 'snapshotting') await new Promise(setImmediate)
    assert.equal((await snapshotOf(app)).state, 'error')
  })

  test('POST /sandbox/:sandboxIdOrName/snapshot answers 409 for a name in use, 400 without a name, 403 above the quota', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    runner.behaveWithImages(() => 'do')
    const id = await create(app)
    await post(app, 'snapshot', { name: 'taken' })
    await untilState(app, id, 'started')
    const { generation } = runner.asked.at(-1)!
    assert.equal((await post(app, 'snapshot', { name: 'taken' })).status, 409)
    for (const body of [{}, { name: '' }, { name: 'a b' }, { name: '../x' }, { name: 'x'.repeat(300) }]) {
      assert.equal((await post(app, 'snapshot', body)).status, 400, JSON.stringify(body))
    }
    assert.equal((await post(app, 'snapshot', { name: 'other', includeMemory: true })).status, 422)
    await app.database.sql`update organizations set snapshot_quota = 1 where id = ${organizations.ours}`
    assert.equal((await post(app, 'snapshot', { name: 'other' })).status, 403)
    assert.equal((await app.as('stranger').post('/sandbox/box/snapshot', { name: 'other' })).status, 404)
    assert.equal((await get(app, id)).state, 'started')
    assert.equal(runner.asked.at(-1)?.generation, generation)
    const [left] = await app.database.sql`select count(*)::int as n from images`
    assert.equal(left?.['n'], 1)
  })
})
