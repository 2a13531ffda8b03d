import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { applyImageReport } from '#src/control/runner-link/image-reports.ts'
import type { ImageReport } from '#src/wire/runner-link.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys } from '#test/control/people.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'
import { listImagesFor } from './image-store.ts'

const runner = { id: 'local', regionId: 'local' }

const tell = (app: TestControl, report: ImageReport) => applyImageReport(app.app.sandboxes, runner, report)

const make = async (app: TestControl, name = 'tool', body: object = { imageName: 'ghcr.io/team/tool:1' }) => {
  const made = await app.as('owner').post('/snapshots', { name, ...body })
  assert.equal(made.status, 200, made.text)
  return made.body
}

const get = async (app: TestControl, name = 'tool') => (await app.as('owner').get(`/snapshots/${name}`)).body

const listed = async (app: TestControl) => (await app.with(keys.runner).get('/runners/images')).body

const imageOf = async (app: TestControl, name = 'tool'): Promise<string> => {
  const [row] = await app.database.sql<{ image: string }[]>`select image from snapshots where name = ${name}`
  return row!.image
}

suite('POST /snapshots', () => {
  test('POST /snapshots answers `pending`; a runner gets the image as an assignment, then the snapshot is active', async () => {
    await using app = await startControl()
    await using linked = await connectRunner(app)
    const made = await make(app, 'tool', { imageName: 'ghcr.io/team/tool:1', cpu: 2, memory: 3, disk: 4 })
    assert.deepEqual([made.state, made.cpu, made.mem, made.disk, made.general], ['pending', 2, 3, 4, false])
    assert.deepEqual([made.regionIds, (await get(app)).regionIds], [['local'], ['local']])
    const image = await imageOf(app)
    const source = { kind: 'registry', reference: 'ghcr.io/team/tool:1' }
    const { organizationId } = made
    const wanted = { image, target: 'present', source, maxGiB: 4, organizationId }
    assert.deepEqual(await listed(app), [wanted])
    while (linked.askedImages.length === 0) await new Promise(setImmediate)
    assert.deepEqual(linked.askedImages, [wanted])

    const digest = `sha256:${'b'.repeat(64)}`
    const config = { entrypoint: ['/run'], env: {}, user: 'tool', workdir: '/' }
    await tell(app, { image, state: 'present', digest, sizeBytes: 2 ** 29, config })
    const done = await get(app)
    assert.deepEqual([done.state, done.size, done.ref, done.entrypoint], ['active', 0.5, digest, ['/run']])
    // The runner has the image now, so control lists the image without its source.
    assert.deepEqual(await listed(app), [{ image, target: 'present', maxGiB: 4, organizationId }])
    const box = await app.as('owner').post('/sandbox', { snapshot: 'tool' })
    assert.deepEqual([box.status, box.body.user, box.body.memory], [200, 'tool', 3])
    // The runner has lost the image, and must pull the stored digest: the tag may name another image now.
    await tell(app, { image, state: 'absent' })
    assert.equal((await listed(app))[0].source.reference, `ghcr.io/team/tool@${digest}`)
  })

  test('a snapshot stays pending until the runner that has the image reports the image’s configuration', async () => {
    await using app = await startControl()
    await make(app)
    const image = await imageOf(app)
    await using linked = await connectRunner(app, { images: ['default', image] })
    assert.deepEqual([(await get(app)).state, (await listed(app))[0].source.kind], ['pending', 'registry'])
    const config = { entrypoint: ['/run'], env: {}, user: 'tool', workdir: '/' }
    linked.say({ type: 'image', report: { image, state: 'present', config } })
    while ((await get(app)).state !== 'active') await new Promise(setImmediate)
    assert.equal((await app.as('owner').post('/sandbox', { snapshot: 'tool' })).body.user, 'tool')
  })

  test('POST /sandbox answers 400 if the snapshot’s image is not in the requested region', async () => {
    await using app = await startControl()
    await using _linked = await connectRunner(app)
    await make(app)
    await tell(app, { image: await imageOf(app), state: 'present' })
    const { id } = (await app.as('owner').post('/regions', { name: 'cellar' })).body
    const refused = await app.as('owner').post('/sandbox', { snapshot: 'tool', target: id })
    assert.equal(refused.status, 400, refused.text)
    assert.match(refused.body.message, /is in the region "local", and not in "/)
  })

  test('if a runner cannot make an image, the snapshot fails with the runner’s reason, without a retry', async () => {
    await using app = await startControl()
    await make(app)
    const image = await imageOf(app)
    await tell(app, { image, state: 'error', errorReason: 'The registry has no such image.' })
    const failed = await get(app)
    assert.deepEqual([failed.state, failed.errorReason], ['error', 'The registry has no such image.'])
    assert.equal((await listed(app))[0].target, 'absent')
    assert.equal((await app.as('owner').post('/sandbox', { snapshot: 'tool' })).status, 400)
    // After a user activates the failed snapshot, the runner is told to make the image again.
    assert.equal((await app.as('owner').post('/snapshots/tool/activate')).body.state, 'pending')
    assert.equal((await listed(app))[0].target, 'present')
  })

  test('a snapshot is pending after one runner failed to make its image, and fails after all runners failed', async () => {
    await using app = await startControl()
    await using _first = await connectRunner(app)
    const { body } = await app.as('admin').post('/runners', { name: 'second' })
    await using _second = await connectRunner(app, { token: body.apiKey })
    const second = { id: 'second', regionId: 'local' }
    const failed = (image: string) => ({ image, state: 'error', errorReason: 'The disk is full.' }) as const
    await make(app)
    const image = await imageOf(app)
    await tell(app, failed(image))
    await tell(app, failed(image))
    assert.equal((await get(app)).state, 'pending')
    await applyImageReport(app.app.sandboxes, second, failed(image))
    assert.deepEqual([(await get(app)).state, (await get(app)).errorReason], ['error', 'The disk is full.'])

    // After an activation, both runners may make the image again. So if one runner fails, the snapshot stays pending.
    await app.as('owner').post('/snapshots/tool/activate')
    await applyImageReport(app.app.sandboxes, second, failed(image))
    assert.equal((await get(app)).state, 'pending')
    await tell(app, { image, state: 'present' })
    assert.equal((await get(app)).state, 'active')

    // The second runner is unschedulable now and gets no images to make, so the snapshot does not wait for this runner.
    await make(app, 'other', { imageName: 'ghcr.io/team/other:1' })
    await app.as('admin').patch('/runners/second/scheduling', { unschedulable: true })
    await tell(app, failed(await imageOf(app, 'other')))
    assert.equal((await get(app, 'other')).state, 'error')
  })

  test('a snapshot fails if its only runner lost the image for good, and can be activated again', async () => {
    await using app = await startControl()
    await using _linked = await connectRunner(app)
    await make(app)
    await make(app, 'built', { buildInfo: { dockerfileContent: 'FROM python:3.12\n' } })
    for (const name of ['tool', 'built']) {
      const image = await imageOf(app, name)
      await tell(app, { image, state: 'present' })
      await tell(app, { image, state: 'error', errorReason: 'There is no such image any more.' })
      const { state, errorReason } = await get(app, name)
      assert.deepEqual([state, errorReason], ['error', 'There is no such image any more.'])
      assert.equal((await app.as('owner').post('/sandbox', { snapshot: name })).status, 400)
      assert.equal((await app.as('owner').post(`/snapshots/${name}/activate`)).body.state, 'pending')
      await tell(app, { image, state: 'present' })
      assert.equal((await get(app, name)).state, 'active')
    }
    // The built-in snapshot stays active, because no caller could activate it again. A runner makes a lost image again when it
    // starts.
    await tell(app, { image: 'default', state: 'error', errorReason: 'It is lost.' })
    assert.equal((await get(app, 'default')).state, 'active')
  })

  test('a snapshot of a definition is `building` at first, and `build_failed` if its build fails', async () => {
    await using app = await startControl()
    const made = await make(app, 'built', { buildInfo: { dockerfileContent: 'FROM python:3.12\n' } })
    assert.deepEqual([made.state, made.buildInfo.dockerfileContent], ['building', 'FROM python:3.12\n'])
    await tell(app, { image: await imageOf(app, 'built'), state: 'error', errorReason: 'Line 1.' })
    assert.equal((await get(app, 'built')).state, 'build_failed')
  })

  test('a snapshot fails if its built image needs a larger disk than the snapshot’s sandboxes get', async () => {
    await using app = await startControl()
    const buildInfo = { dockerfileContent: 'FROM python:3.12\nRUN make\n' }
    for (const name of ['large', 'small']) await make(app, name, { buildInfo, disk: 3 })
    const image = await imageOf(app, 'large')
    await tell(app, { image, state: 'present', sizeBytes: 5 * 2 ** 30, leastDiskBytes: 3.5 * 2 ** 30 })
    const { state, errorReason } = await get(app, 'large')
    const reason = 'Its sandboxes need a disk of at least 3.5 GiB, and it gives them 3 GiB.'
    assert.deepEqual([state, errorReason], ['error', reason])
    const { target } = (await listed(app)).find((each: { image: string }) => each.image === image)
    assert.equal(target, 'absent')
    // The layers of the base image need no space on the sandbox's disk (`leastDiskBytes`), so 3 GiB are enough.
    const sizeBytes = 5 * 2 ** 30
    await tell(app, { image: await imageOf(app, 'small'), state: 'present', sizeBytes, leastDiskBytes: 3 * 2 ** 30 })
    assert.equal((await get(app, 'small')).state, 'active')
  })

  test('a snapshot shows the progress of its image, and fails after an hour without an image', async () => {
    await using app = await startControl()
    await using linked = await connectRunner(app)
    await make(app)
    linked.say({ type: 'image-progress', image: await imageOf(app), step: 'pulling', percent: 40 })
    while ((await get(app)).state !== 'pulling') await new Promise(setImmediate)
    assert.deepEqual((await get(app)).progress, { step: 'pulling', percent: 40 })
    await app.pass({ minutes: 61 })
    await app.sweep()
    assert.equal((await get(app)).state, 'error')
  })

  test('POST /snapshots answers 409 for a name in use, 400 or 422 for an invalid source, 403 for too large a size', async () => {
    await using app = await startControl()
    await make(app)
    const status = async (body: object) => (await app.as('owner').post('/snapshots', { name: 'n', ...body })).status
    assert.equal(await status({ name: 'tool', imageName: 'a' }), 409)
    assert.equal(await status({ imageName: '../a' }), 400)
    assert.equal(await status({}), 400)
    assert.equal(await status({ name: 'a b', imageName: 'a' }), 400)
    assert.equal(await status({ imageName: 'a', regionId: 'none' }), 404)
    assert.equal(await status({ imageName: 'a', cpu: 10_000 }), 403)
    assert.equal(await status({ imageName: 'a', gpu: 1 }), 422)
    assert.equal(await status({ imageName: 'a', sandboxClass: 'linux-vm' }), 422)
    assert.equal((await app.as('member').post('/snapshots', { name: 'n', imageName: 'a' })).status, 403)
  })
})

suite('DELETE /snapshots/{idOrName}', () => {
  test('DELETE /snapshots/{idOrName} removes the image when the last sandbox made from the image is destroyed', async () => {
    await using app = await startControl()
    await using linked = await connectRunner(app)
    await make(app)
    const image = await imageOf(app)
    await tell(app, { image, state: 'present' })
    const box = (await app.as('owner').post('/sandbox', { snapshot: 'tool' })).body
    assert.equal((await app.as('owner').delete('/snapshots/tool')).status, 200)
    assert.equal((await app.as('owner').get('/snapshots/tool')).status, 404)
    assert.equal((await listed(app))[0].target, 'present')
    await app.as('owner').delete(`/sandbox/${box.id}`)
    await linked.untilAsked(({ target }) => target === 'destroyed')
    while ((await listed(app))[0].target !== 'absent') await new Promise(setImmediate)
    await tell(app, { image, state: 'absent' })
    assert.deepEqual(await listed(app), [])
  })

  test('DELETE /snapshots/{idOrName} answers 403 for a general snapshot, 404 for another organization’s snapshot', async () => {
    await using app = await startControl()
    await make(app)
    assert.equal((await app.as('owner').delete('/snapshots/default')).status, 403)
    assert.equal((await app.as('stranger').delete('/snapshots/tool')).status, 404)
  })
})

suite('POST /snapshots/{idOrName}/deactivate, POST /snapshots/{idOrName}/activate', () => {
  test('no sandbox can be made from an inactive snapshot; activation fetches the image again by its digest', async () => {
    await using app = await startControl()
    await make(app)
    const image = await imageOf(app)
    const digest = `sha256:${'c'.repeat(64)}`
    await tell(app, { image, state: 'present', digest })
    assert.equal((await app.as('owner').post('/snapshots/tool/deactivate')).status, 204)
    assert.equal((await app.as('owner').post('/snapshots/tool/deactivate')).status, 204)
    assert.deepEqual([(await get(app)).state, (await listed(app))[0].target], ['inactive', 'absent'])
    assert.equal((await app.as('owner').post('/sandbox', { snapshot: 'tool' })).status, 400)
    await tell(app, { image, state: 'absent' })
    assert.equal((await app.as('owner').post('/snapshots/tool/activate')).body.state, 'pending')
    const [again] = await listed(app)
    assert.deepEqual([again.target, again.source.reference], ['present', `ghcr.io/team/tool@${digest}`])
  })

  test('an activated snapshot is pending until a runner has its image, or active if a sandbox uses its image', async () => {
    await using app = await startControl()
    await using linked = await connectRunner(app)
    await make(app)
    const image = await imageOf(app)
    await tell(app, { image, state: 'present' })
    const change = async (verb: 'activate' | 'deactivate') =>
      (await app.as('owner').post(`/snapshots/tool/${verb}`)).body?.state
    await change('deactivate')
    assert.equal(await change('activate'), 'pending')
    // The database names no runner with this image, so the snapshot stays pending until a runner reports the image.
    assert.equal((await app.database.sql`select id from runners where ${image} = any(images)`).length, 0)
    while (linked.askedImages.at(-1)?.target !== 'present') await new Promise(setImmediate)
    await tell(app, { image, state: 'present' })
    assert.equal((await get(app)).state, 'active')

    assert.equal((await app.as('owner').post('/sandbox', { snapshot: 'tool' })).status, 200)
    await change('deactivate')
    assert.equal(await change('activate'), 'active')
  })

  test('if a runner removes an image that a snapshot needs, control immediately asks for the image again', async () => {
    await using app = await startControl()
    await using linked = await connectRunner(app)
    await make(app)
    const image = await imageOf(app)
    await tell(app, { image, state: 'present' })
    const asked = linked.askedImages.length
    await tell(app, { image, state: 'absent' })
    while (linked.askedImages.length === asked) await new Promise(setImmediate)
    assert.deepEqual([linked.askedImages.at(-1)?.image, linked.askedImages.at(-1)?.target], [image, 'present'])
  })

  test('activate and deactivate answer 400 for a snapshot whose image is not made yet', async () => {
    await using app = await startControl()
    await make(app)
    assert.equal((await app.as('owner').post('/snapshots/tool/deactivate')).status, 400)
    assert.equal((await app.as('owner').post('/snapshots/tool/activate')).status, 400)
  })

  test('a snapshot that was not used for 14 days becomes inactive; the default snapshot does not', async () => {
    await using app = await startControl()
    await make(app)
    await tell(app, { image: await imageOf(app), state: 'present' })
    app.clock.advance({ minutes: 20_161 })
    await app.sweep()
    assert.equal((await get(app)).state, 'inactive')
    assert.notEqual((await get(app, 'default')).state, 'inactive')
  })
})

suite('GET /runners/images', () => {
  test('GET /runners/images answers 403 to users; a runner’s report about an image that it was not assigned changes nothing', async () => {
    await using app = await startControl()
    await make(app)
    const image = await imageOf(app)
    await applyImageReport(app.app.sandboxes, { id: 'other', regionId: 'elsewhere' }, { image, state: 'present' })
    await tell(app, { image: 'img-of-nobody', state: 'present' })
    assert.equal((await get(app)).state, 'pending')
    assert.equal((await app.as('owner').get('/runners/images')).status, 403)
  })

  test('GET /runners/images names the source of an image while a snapshot waits for it, even if a runner has the image', async () => {
    await using app = await startControl()
    const { id } = await make(app)
    const image = await imageOf(app)
    await tell(app, { image, state: 'present', config: { entrypoint: [], env: {}, user: '', workdir: '/' } })
    assert.equal((await listed(app))[0].source, undefined)
    await app.database.sql`update snapshots set state = 'pulling' where id = ${id}`
    assert.equal((await listed(app))[0].source.kind, 'registry')
  })

  test('GET /runners/images lists a limited number of images to make, round-robin over the organizations', async () => {
    await using app = await startControl()
    for (const name of ['a', 'b', 'c']) await make(app, name)
    app.clock.advance({ seconds: 1 })
    await app.as('stranger').post('/snapshots', { name: 'late', imageName: 'ghcr.io/team/late:1' })
    const some = await listImagesFor(app.database.sql, { id: 'local', regionId: 'local' }, 2)
    const references = some.map(({ source }) => source?.kind === 'registry' && source.reference)
    assert.deepEqual(references, ['ghcr.io/team/tool:1', 'ghcr.io/team/late:1'])
    assert.equal((await listed(app)).length, 4)
  })
})
