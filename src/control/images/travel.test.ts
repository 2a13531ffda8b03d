// Tests that snapshots of sandboxes are copied to the store, and from there to the other runners of the region.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { ImageAssignment } from '#src/wire/runner-link.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys } from '#test/control/people.ts'
import { connectRunner, type SimulatedRunner, untilState } from '#test/control/simulated-runner.ts'

const sha256 = 'c'.repeat(64)
const shared = { sharesStore: true } as const

const addRunner = async (app: TestControl, name: string): Promise<string> =>
  (await app.as('admin').post('/runners', { name })).body.apiKey

const untilAskedImage = async (
  { askedImages }: SimulatedRunner,
  is: (asked: ImageAssignment) => boolean,
): Promise<ImageAssignment> => {
  const end = performance.now() + 20_000
  for (;;) {
    const found = askedImages.findLast(is)
    if (found !== undefined) return found
    assert.ok(performance.now() < end, JSON.stringify(askedImages))
    await new Promise(setImmediate)
  }
}

const present = (runner: SimulatedRunner, image: string, more: object = {}) =>
  runner.say({ type: 'image', report: { image, state: 'present', sizeBytes: 1000, ...more } })

/** Makes a snapshot with the name `made` of a new sandbox on `runner`. Returns the name of its image. */
const makeSnapshot = async (app: TestControl, runner: SimulatedRunner): Promise<string> => {
  const { body: box } = await app.as('owner').post('/sandbox', { name: 'box' })
  assert.equal((await app.as('owner').post('/sandbox/box/snapshot', { name: 'made' })).status, 200)
  const { image } = await untilAskedImage(runner, ({ source }) => source?.kind === 'sandbox')
  present(runner, image)
  await untilState(app, box.id, 'started')
  return image
}

const waiting = { sandboxes: { createWaitSeconds: 10 } }

suite('snapshots of sandboxes on several runners', () => {
  test('the runner that has a snapshot copies it to the store; another runner fetches the copy and uses it', async () => {
    await using app = await startControl(waiting)
    await using first = await connectRunner(app, { capabilities: shared })
    const token = await addRunner(app, 'second')
    await using second = await connectRunner(app, { capabilities: shared, token })
    const drain = (runner: string, unschedulable: boolean) =>
      app.as('admin').patch(`/runners/${runner}/scheduling`, { unschedulable })
    await drain('second', true)
    const image = await makeSnapshot(app, first)
    await untilAskedImage(first, ({ toStore }) => toStore === true)
    assert.equal(second.askedImages.length, 0)

    present(first, image, { stored: { sha256 } })
    const brought = await untilAskedImage(second, (asked) => asked.image === image)
    assert.deepEqual(brought.source, { kind: 'store', sha256, base: 'default' })
    present(second, image)
    const { body: ready } = await app.as('owner').get('/snapshots/made')
    assert.equal(ready.state, 'active')

    await drain('second', false)
    await drain('local', true)
    const made = await app.as('owner').post('/sandbox', { snapshot: 'made', name: 'copy' })
    assert.equal(made.status, 200, made.text)
    assert.equal((await app.as('admin').get(`/runners/by-sandbox/${made.body.id}`)).body.id, 'second')
  })

  test('a create waits until a runner has fetched the snapshot; the sandbox has the snapshot’s Linux user', async () => {
    await using app = await startControl(waiting)
    await using first = await connectRunner(app, { capabilities: shared })
    await using second = await connectRunner(app, {
      capabilities: shared,
      token: await addRunner(app, 'second'),
    })
    const drain = (runner: string, unschedulable: boolean) =>
      app.as('admin').patch(`/runners/${runner}/scheduling`, { unschedulable })
    await drain('second', true)
    const image = await makeSnapshot(app, first)
    present(first, image, { stored: { sha256 }, config: { entrypoint: [], env: {}, user: 'of-base', workdir: '/' } })
    await untilAskedImage(second, (asked) => asked.image === image)
    await drain('second', false)
    await drain('local', true)
    const creates = Promise.all(
      Array.from({ length: 5 }, (_, at) => app.as('owner').post('/sandbox', { snapshot: 'made', name: `copy-${at}` })),
    )
    const waitingFor = async () =>
      (await app.as('owner').get('/sandbox?states=pending_build')).body.items.map(({ name }: { name: string }) => name)
    while ((await waitingFor()).length < 5) await new Promise(setImmediate)
    present(second, image)
    for (const { status, body } of await creates) {
      assert.equal(status, 200)
      await untilState(app, body.id, 'started')
      const { body: record } = await app.as('owner').get(`/sandbox/${body.id}`)
      assert.equal(record.user, 'daytona')
    }
  })

  test('a snapshot that is in the store can be used after its runner was removed', async () => {
    await using app = await startControl(waiting)
    await using _own = await connectRunner(app, { capabilities: { ...shared, cpu: 0.001 } })
    await using first = await connectRunner(app, { capabilities: shared, token: await addRunner(app, 'first') })
    const image = await makeSnapshot(app, first)
    present(first, image, { stored: { sha256 } })
    await untilAskedImage(_own, (asked) => asked.image === image)
    present(_own, image)
    assert.equal((await app.as('admin').delete('/runners/first?force=true')).status, 204)
    assert.equal((await app.as('owner').get('/snapshots/made')).body.state, 'active')
  })

  test('if a snapshot is deleted while its runner uploads it to the store, the runner deletes the upload too', async () => {
    await using app = await startControl(waiting)
    await using first = await connectRunner(app, { capabilities: shared })
    await using second = await connectRunner(app, {
      capabilities: { ...shared, cpu: 0.001 },
      token: await addRunner(app, 'second'),
    })
    const image = await makeSnapshot(app, first)
    assert.equal((await app.as('owner').delete('/snapshots/made')).status, 200)
    const removed = await untilAskedImage(first, ({ target }) => target === 'absent')
    assert.deepEqual([removed.image, removed.isStored], [image, true])
    assert.equal(second.askedImages.length, 0)
  })

  test('a snapshot is not copied to a store that only one runner uses', async () => {
    await using app = await startControl(waiting)
    await using first = await connectRunner(app, { capabilities: shared })
    await using _second = await connectRunner(app, {
      capabilities: { cpu: 0.001 },
      token: await addRunner(app, 'second'),
    })
    await makeSnapshot(app, first)
    const { body } = await app.with(keys.runner).get('/runners/images')
    assert.deepEqual(
      body.map(({ toStore }: ImageAssignment) => toStore),
      [undefined],
    )
  })

  test('a fork whose parent’s host is full is made on another host, from a copy in the store', async () => {
    await using app = await startControl(waiting)
    await using first = await connectRunner(app, { capabilities: { ...shared, diskGiB: 0.5 } })
    await using second = await connectRunner(app, { capabilities: shared, token: await addRunner(app, 'second') })
    const drain = (runner: string, unschedulable: boolean) =>
      app.as('admin').patch(`/runners/${runner}/scheduling`, { unschedulable })
    await drain('second', true)
    const { body: parent } = await app.as('owner').post('/sandbox', { name: 'box' })
    assert.equal(parent.state, 'started')
    await drain('second', false)
    const forking = app.as('owner').post('/sandbox/box/fork', { name: 'child' })
    const { image } = await untilAskedImage(first, ({ source }) => source?.kind === 'sandbox')
    const config = { entrypoint: [], env: {}, user: 'of-base', workdir: '/' }
    present(first, image, { config })
    await untilState(app, parent.id, 'started')
    await untilAskedImage(first, ({ toStore }) => toStore === true)
    present(first, image, { config, stored: { sha256 } })
    await untilAskedImage(second, (asked) => asked.image === image)
    present(second, image, { config })
    const { status, body: child } = await forking
    assert.equal(status, 200)
    await untilState(app, child.id, 'started')
    const { body: record } = await app.as('owner').get('/sandbox/child')
    assert.deepEqual([record.user, record.forkKind ?? 'disk'], ['daytona', 'disk'])
    assert.equal((await app.as('admin').get(`/runners/by-sandbox/${child.id}`)).body.id, 'second')
    assert.equal((await app.as('owner').get('/sandbox/child/parent')).body.id, parent.id)
    assert.equal((await app.as('owner').delete('/sandbox/child')).status, 200)
    await untilState(app, child.id, 'destroyed')
    const { body: images } = await app.with(keys.runner).get('/runners/images')
    assert.deepEqual(
      images.map(({ target, isStored }: ImageAssignment) => [target, isStored]),
      [['absent', true]],
    )
  })
})
