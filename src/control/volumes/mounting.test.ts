import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { connectRunner, type RunnerOptions, untilState } from '#test/control/simulated-runner.ts'

const waiting = { sandboxes: { createWaitSeconds: 20 } }

const makeVolume = async (app: TestControl, name: string): Promise<string> =>
  (await app.as('owner').post('/volumes', { name })).body.id

const mounting = (...names: string[]) => ({
  volumes: names.map((volumeId) => ({ volumeId, mountPath: `/${volumeId}` })),
})

const create = (app: TestControl, body: object) => app.as('owner').post('/sandbox', body)

/** Adds a runner with this id and connects it. */
const addRunner = async (app: TestControl, id: string, options: RunnerOptions = {}) => {
  const { apiKey: token } = (await app.as('admin').post('/runners', { name: id })).body
  return await connectRunner(app, { ...options, token })
}

suite('POST /sandbox with volumes', () => {
  test('POST /sandbox with volumes returns their ids, and the sandbox’s runner makes each volume once and mounts it', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await makeVolume(app, 'data')
    const volumes = [
      { volumeId: 'data', mountPath: '/data/', subpath: 'a/b' },
      { volumeId: id, mountPath: '/all' },
    ]
    const made = await create(app, { volumes })
    assert.equal(made.status, 200, made.text)
    const shown = [
      { volumeId: id, mountPath: '/data', subpath: 'a/b' },
      { volumeId: id, mountPath: '/all' },
    ]
    assert.deepEqual(made.body.volumes, shown)
    assert.deepEqual((await app.as('owner').get(`/sandbox/${made.body.id}`)).body.volumes, shown)
    const where = { driver: 'disk', sizeGiB: 10 }
    const assigned = shown.map((mount) => ({ ...mount, ...where, isNew: true }))
    assert.deepEqual(runner.asked[0]?.volumes, assigned)
    const next = await create(app, { volumes })
    assert.deepEqual(
      runner.asked.find(({ sandboxId }) => sandboxId === next.body.id)?.volumes,
      shown.map((mount) => ({ ...mount, ...where })),
    )
    await app.as('owner').post(`/sandbox/${made.body.id}/stop`)
    await untilState(app, made.body.id, 'stopped')
    await app.as('owner').post(`/sandbox/${made.body.id}/start`)
    const again = await runner.untilAsked(({ sandboxId, generation }) => sandboxId === made.body.id && generation === 3)
    assert.deepEqual(
      again.volumes,
      shown.map((mount) => ({ ...mount, ...where })),
    )
    assert.notEqual((await app.as('owner').get(`/volumes/${id}`)).body.lastUsedAt, null)
  })

  test('a fork mounts its parent’s volumes; a sandbox made from the parent’s snapshot mounts none', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    await makeVolume(app, 'data')
    const parent = (await create(app, mounting('data'))).body
    const child = (await app.as('owner').post(`/sandbox/${parent.id}/fork`, {})).body
    assert.deepEqual(child.volumes, parent.volumes)
    const asked = await runner.untilAsked(({ sandboxId }) => sandboxId === child.id)
    assert.deepEqual(
      asked.volumes?.map(({ isNew }) => isNew),
      [undefined],
    )
    runner.behaveWithImages(() => 'do')
    await app.as('owner').post(`/sandbox/${parent.id}/snapshot`, { name: 'kept' })
    await untilState(app, parent.id, 'started')
    assert.deepEqual((await create(app, { snapshot: 'kept' })).body.volumes, [])
  })

  test('volumes of a sandbox that waits for its image cannot be deleted, and are mounted at its start', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    const id = await makeVolume(app, 'data')
    const buildInfo = { dockerfileContent: 'FROM alpine:3.20\n' }
    const body = { ...mounting('data'), buildInfo }
    const key = { headers: { 'idempotency-key': 'once' } }
    const made = (await app.as('owner').post('/sandbox', body, key)).body
    assert.deepEqual([made.state, made.volumes], ['pending_build', [{ volumeId: id, mountPath: '/data' }]])
    assert.equal((await app.as('owner').post('/sandbox', body, key)).body.id, made.id)
    assert.equal((await app.as('owner').delete(`/volumes/${id}`)).status, 409)
    const config = { entrypoint: [], env: {}, user: 'app', workdir: '/' }
    runner.say({ type: 'image', report: { image: made.buildInfo.snapshotRef, state: 'present', config } })
    await untilState(app, made.id, 'started')
    const asked = await runner.untilAsked(({ sandboxId }) => sandboxId === made.id)
    assert.deepEqual(asked.volumes, [{ volumeId: id, mountPath: '/data', driver: 'disk', sizeGiB: 10, isNew: true }])
    const other = { dockerfileContent: 'FROM busybox\n' }
    const unbuilt = (await create(app, { ...mounting('data'), buildInfo: other })).body
    for (const each of [unbuilt, made]) {
      await app.as('owner').delete(`/sandbox/${each.id}`)
      await untilState(app, each.id, 'destroyed')
    }
    assert.equal((await app.as('owner').delete(`/volumes/${id}`)).status, 200)
  })

  test('a create with volumes never claims a warm sandbox', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    assert.equal((await app.as('owner').post('/warm-pools', { snapshot: 'default', pool: 1 })).status, 201)
    await app.sweep()
    const [warm] = (await app.as('owner').get('/sandbox?includeWarm=true')).body.items
    assert.ok(warm)
    await makeVolume(app, 'data')
    const made = (await create(app, mounting('data'))).body
    assert.notEqual(made.id, warm.id)
    assert.equal((await create(app, {})).body.id, warm.id)
  })

  test('POST /sandbox answers 404 if a volume is unknown or another organization’s, and makes no sandbox', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await makeVolume(app, 'data')
    const body = mounting('data')
    assert.equal((await app.as('stranger').post('/sandbox', body)).status, 404)
    assert.equal(
      (await app.as('stranger').post('/sandbox', { volumes: [{ volumeId: id, mountPath: '/d' }] })).status,
      404,
    )
    assert.equal((await create(app, mounting('data', 'none'))).status, 404)
    assert.equal((await create(app, { volumes: null })).status, 200)
    assert.equal(runner.asked.length, 1)
  })

  test('a sandbox is placed on the runner that has its volumes, even if another runner has more room', async () => {
    await using app = await startControl(waiting)
    await using _small = await connectRunner(app, { capabilities: { cpu: 1 } })
    await makeVolume(app, 'data')
    const first = (await create(app, mounting('data'))).body
    await using large = await addRunner(app, 'large', { capabilities: { cpu: 64 } })
    assert.equal((await create(app, {})).body.runnerId, 'large')
    const second = (await create(app, mounting('data'))).body
    assert.deepEqual([first.runnerId, second.runnerId], ['local', 'local'])
    await makeVolume(app, 'other')
    // The first sandbox that mounts the new volume `other` also mounts `data`. So `other` is placed on the runner that
    // has `data`.
    assert.equal((await create(app, mounting('other', 'data'))).body.runnerId, 'local')
    await makeVolume(app, 'third')
    assert.equal((await create(app, mounting('third'))).body.runnerId, 'large')
    const apart = await create(app, mounting('data', 'third'))
    assert.deepEqual([apart.status, apart.body.code], [400, 'BAD_REQUEST'])
    assert.match(apart.body.message, /different runners/)
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: true })
    const drained = await create(app, mounting('data'))
    assert.deepEqual([drained.status, drained.body.code], [503, 'SERVICE_UNAVAILABLE'])
    assert.match(drained.body.message, /The volume "data" is on the runner "local"/)
    assert.equal(large.asked.length, 2)
  })

  test('POST /sandbox answers 503 with the runner’s name if the runner of its volume has no room', async () => {
    await using app = await startControl({
      sandboxes: { createWaitSeconds: 20, overcommit: { cpu: 1, memory: 1, disk: 1 } },
    })
    await using _runner = await connectRunner(app, { capabilities: { cpu: 2, diskGiB: 100 } })
    await makeVolume(app, 'data')
    assert.equal((await create(app, mounting('data'))).status, 200)
    await using _other = await addRunner(app, 'other', { capabilities: { cpu: 64 } })
    const reply = await create(app, { ...mounting('data'), cpu: 2 })
    assert.equal(reply.status, 503)
    assert.match(reply.body.message, /The runner "local", which has the volume "data", has no room/)
  })

  test('volumes count towards the used disk space of their runner, even before the runner has made them', async () => {
    await using app = await startControl({
      sandboxes: { createWaitSeconds: 20, overcommit: { cpu: 9, memory: 9, disk: 1 } },
    })
    await using _runner = await connectRunner(app, { capabilities: { diskGiB: 26 } })
    await makeVolume(app, 'one')
    await makeVolume(app, 'two')
    assert.equal((await create(app, mounting('one'))).status, 200)
    assert.equal((await create(app, mounting('two'))).status, 200)
    assert.equal((await create(app, {})).status, 503)
  })

  test('POST /sandbox with volumes answers 503 if no runner can mount volumes', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app, { capabilities: { volumes: undefined as never } })
    await makeVolume(app, 'data')
    const reply = await create(app, mounting('data'))
    assert.equal(reply.status, 503)
    assert.match(reply.body.message, /can mount the volume "data"/)
  })

  test('each runner that has the operator’s shared directory can mount and remove the volumes in it', async () => {
    await using app = await startControl(waiting)
    await using _plain = await connectRunner(app, { capabilities: { cpu: 64 } })
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: true })
    const capabilities = { volumes: 'directory' } as const
    await using one = await addRunner(app, 'one', { capabilities })
    const id = await makeVolume(app, 'data')
    const first = (await create(app, mounting('data'))).body
    assert.equal(first.runnerId, 'one')
    assert.deepEqual(
      one.asked[0]?.volumes?.map(({ driver }) => driver),
      ['directory'],
    )
    await using two = await addRunner(app, 'two', { capabilities: { ...capabilities, cpu: 64 } })
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: false })
    const second = (await create(app, mounting('data'))).body
    assert.equal(second.runnerId, 'two')
    for (const box of [first, second]) {
      await app.as('owner').delete(`/sandbox/${box.id}`)
      await untilState(app, box.id, 'destroyed')
    }
    assert.equal((await app.as('owner').delete(`/volumes/${id}`)).status, 200)
    two.say({ type: 'volume', report: { volumeId: id, state: 'absent' } })
    while ((await app.as('owner').get(`/volumes/${id}`)).status === 200)
      await new Promise((resolve) => setTimeout(resolve, 10))
  })

  test('an archived sandbox with volumes is restored only on the runner that has the volumes', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    await makeVolume(app, 'data')
    const { id } = (await create(app, mounting('data'))).body
    await app.as('owner').post(`/sandbox/${id}/stop`)
    await untilState(app, id, 'stopped')
    await app.as('owner').post(`/sandbox/${id}/archive`)
    await untilState(app, id, 'archived')
    await using _other = await addRunner(app, 'other', { capabilities: { cpu: 64 } })
    await app.as('owner').post(`/sandbox/${id}/start`)
    await untilState(app, id, 'started')
    const { body } = await app.as('owner').get(`/sandbox/${id}`)
    assert.equal(body.runnerId, 'local')
    assert.deepEqual(
      runner.asked.at(-1)?.volumes?.map(({ isNew }) => isNew),
      [undefined],
    )
  })

  test('if a create with a volume and the volume’s delete are simultaneous, exactly one of them succeeds', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    for (let round = 0; round < 5; round++) {
      const id = await makeVolume(app, `data-${round}`)
      const body = { volumes: [{ volumeId: id, mountPath: '/data' }] }
      const [made, deleted] = await Promise.all([create(app, body), app.as('owner').delete(`/volumes/${id}`)])
      const isKept = (await app.as('owner').get(`/volumes/${id}`)).body.state === 'ready'
      assert.deepEqual([made.status, deleted.status], isKept ? [200, 409] : [404, 200])
    }
  })

  test('if the runner of a volume is removed, the volume is in error, and can be deleted', async () => {
    await using app = await startControl(waiting)
    await using _local = await connectRunner(app, { images: [] })
    await using _far = await addRunner(app, 'far')
    const id = await makeVolume(app, 'data')
    const box = (await create(app, mounting('data'))).body
    assert.equal(box.runnerId, 'far')
    await app.as('owner').delete(`/sandbox/${box.id}`)
    await untilState(app, box.id, 'destroyed')
    assert.equal((await app.as('admin').delete('/runners/far')).status, 409)
    assert.equal((await app.as('admin').delete('/runners/far?force=true')).status, 204)
    const lost = (await app.as('owner').get(`/volumes/${id}`)).body
    assert.deepEqual(
      [lost.state, lost.errorReason],
      ['error', 'The runner that had this volume was taken out of service.'],
    )
    assert.equal((await create(app, mounting('data'))).status, 400)
    assert.equal((await app.as('owner').delete(`/volumes/${id}`)).status, 200)
    assert.equal((await app.as('owner').get(`/volumes/${id}`)).status, 404)
  })

  test('a deleted organization’s row stays until its volumes are removed from their runner', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    await makeVolume(app, 'unused')
    const id = await makeVolume(app, 'data')
    const box = (await create(app, mounting('data'))).body
    assert.equal((await app.asUser('owner').delete(`/organizations/${organizations.ours}`)).status, 204)
    await app.sweep()
    await untilState(app, box.id, 'destroyed')
    await app.sweep()
    const rows = async () =>
      (await app.database.sql`select id, state from volumes where state <> 'deleted'`).map((row) => ({ ...row }))
    assert.deepEqual(await rows(), [{ id, state: 'pending_delete' }])
    runner.say({ type: 'volume', report: { volumeId: id, state: 'absent' } })
    while ((await rows()).length > 0) await new Promise((resolve) => setTimeout(resolve, 10))
    app.clock.advance({ minutes: 6 })
    await app.sweep()
    assert.deepEqual(
      [...(await app.database.sql`select 1 from deleted_organizations union all select 1 from volumes`)],
      [],
    )
  })
})
