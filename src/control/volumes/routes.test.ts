import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'

const namesOf = (body: { name: string }[]) => body.map(({ name }) => name)

suite('the endpoints of volumes', () => {
  test('POST /volumes, GET /volumes/{volumeId}, GET /volumes/by-name/{volumeName} return a volume that is ready immediately', async () => {
    await using app = await startControl()
    const made = await app.as('owner').post('/volumes', { name: ' shared data ' })
    assert.equal(made.status, 200)
    const { id, createdAt, updatedAt, ...rest } = made.body
    assert.match(id, /^[0-9a-f-]{36}$/)
    assert.equal(createdAt, updatedAt)
    assert.deepEqual(rest, {
      name: 'shared data',
      organizationId: organizations.ours,
      state: 'ready',
      lastUsedAt: null,
      errorReason: null,
    })
    assert.deepEqual((await app.as('owner').get(`/volumes/${id}`)).body, made.body)
    assert.deepEqual((await app.as('owner').get('/volumes/by-name/shared%20data')).body, made.body)
    for (const path of [id, 'by-name/shared%20data', 'by-name/none', 'none', 'shared%20data'])
      assert.equal((await app.as('stranger').get(`/volumes/${path}`)).status, 404, path)
  })

  test('each endpoint below /volumes needs its permission; a suspended organization cannot make volumes', async () => {
    await using app = await startControl()
    const { id } = (await app.as('owner').post('/volumes', { name: 'one' })).body
    for (const reply of [
      await app.as('member').get('/volumes'),
      await app.as('member').get(`/volumes/${id}`),
      await app.as('member').get('/volumes/by-name/one'),
      await app.as('member').post('/volumes', { name: 'two' }),
      await app.as('member').delete(`/volumes/${id}`),
    ])
      assert.equal(reply.status, 403)
    await app.database.sql`update organizations set suspended = true where id = ${organizations.ours}`
    assert.equal((await app.asUser('owner').post('/volumes', { name: 'two' })).status, 403)
  })

  test('POST /volumes answers 400 for an invalid name, 409 for a name in use; two organizations may use one name', async () => {
    await using app = await startControl()
    const wrong = [
      undefined,
      1,
      null,
      '',
      ' ',
      'a/b',
      '..',
      'a\nb',
      'x'.repeat(256),
      '<b>x</b>',
      '0e2b5d9a1c3f4e5a9b7c2d4f6a8b0c1e',
    ]
    for (const name of wrong)
      assert.equal((await app.as('owner').post('/volumes', { name })).status, 400, JSON.stringify(name))
    const replies = await Promise.all([1, 2, 3].map(() => app.as('owner').post('/volumes', { name: 'one' })))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 409, 409])
    assert.equal((await app.as('stranger').post('/volumes', { name: 'one' })).status, 200)
  })

  test('POST /volumes answers 403 above the quota for volumes, even for concurrent calls, not counting deleted volumes', async () => {
    await using app = await startControl()
    await app.database.sql`update organizations set volume_quota = 2 where id = ${organizations.ours}`
    const replies = await Promise.all(['a', 'b', 'c', 'd'].map((name) => app.as('owner').post('/volumes', { name })))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 200, 403, 403])
    assert.match(replies.find(({ status }) => status === 403)?.body.message, /volume quota of 2 is exceeded/)
    const usage = async () => (await app.asUser('owner').get(`/organizations/${organizations.ours}/usage`)).body
    assert.deepEqual([(await usage()).totalVolumeQuota, (await usage()).currentVolumeUsage], [2, 2])
    const [first] = (await app.as('owner').get('/volumes')).body
    assert.equal((await app.as('owner').delete(`/volumes/${first.id}`)).status, 200)
    assert.equal((await usage()).currentVolumeUsage, 1)
  })

  test('DELETE /volumes/{volumeId} immediately deletes a volume that was never mounted, and frees its name', async () => {
    await using app = await startControl()
    const { id } = (await app.as('owner').post('/volumes', { name: 'one' })).body
    assert.equal((await app.as('stranger').delete(`/volumes/${id}`)).status, 404)
    const deleted = await app.as('owner').delete(`/volumes/${id}`)
    assert.deepEqual([deleted.status, deleted.text], [200, ''])
    assert.equal((await app.as('owner').delete(`/volumes/${id}`)).status, 404)
    assert.equal((await app.as('owner').post('/volumes', { name: 'one' })).status, 200)
  })

  test('GET /volumes lists the newest volumes first; on request, also volumes deleted within the last week', async () => {
    await using app = await startControl()
    for (const name of ['old', 'new']) {
      await app.as('owner').post('/volumes', { name })
      app.clock.advance({ seconds: 1 })
    }
    const { id } = (await app.as('owner').get('/volumes/by-name/old')).body
    assert.deepEqual(namesOf((await app.as('owner').get('/volumes')).body), ['new', 'old'])
    await app.as('owner').delete(`/volumes/${id}`)
    assert.deepEqual(namesOf((await app.as('owner').get('/volumes')).body), ['new'])
    const all = async () => namesOf((await app.as('owner').get('/volumes?includeDeleted=true')).body)
    assert.deepEqual(await all(), ['new', 'old'])
    assert.deepEqual((await app.as('stranger').get('/volumes?includeDeleted=true')).body, [])
    app.clock.advance({ hours: 8 * 24 })
    await app.sweep()
    assert.deepEqual(await all(), ['new'])
  })

  test('a webhook is sent for each new volume, and for each change of a volume’s state', async () => {
    await using app = await startControl()
    await app.database.sql`
      insert into webhook_applications (organization_id, is_listening, provider, retry_count, created_at, updated_at)
      values (${organizations.ours}, true, 'embedded', 0, now(), now())`
    const { id } = (await app.as('owner').post('/volumes', { name: 'one' })).body
    await app.as('owner').delete(`/volumes/${id}`)
    const told = await app.database.sql`
      select event, subject_id, name, old_state, state from webhook_messages order by id`
    const about = { subject_id: id, name: 'one' }
    assert.deepEqual(
      told.map((row) => ({ ...row })),
      [
        { event: 'volume.created', ...about, old_state: null, state: 'ready' },
        { event: 'volume.state.updated', ...about, old_state: 'ready', state: 'deleted' },
      ],
    )
  })
})

suite('the runner of a volume', () => {
  test('GET /runners/volumes lists a deleted volume until its runner reports that its files are removed', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using runner = await connectRunner(app)
    const { id } = (await app.as('owner').post('/volumes', { name: 'one' })).body
    const volumes = [{ volumeId: 'one', mountPath: '/data' }]
    const box = (await app.as('owner').post('/sandbox', { volumes })).body
    const refused = await app.as('owner').delete(`/volumes/${id}`)
    assert.deepEqual([refused.status, refused.body.code], [409, 'CONFLICT'])
    assert.match(refused.body.message, new RegExp(box.name))
    assert.equal((await app.as('owner').get(`/volumes/${id}`)).body.state, 'ready')

    await app.as('owner').delete(`/sandbox/${box.id}`)
    await runner.untilAsked(({ target }) => target === 'destroyed')
    const isGone = async () => (await app.as('owner').delete(`/volumes/${id}`)).status === 200
    while (!(await isGone())) await new Promise((resolve) => setTimeout(resolve, 10))
    assert.equal((await app.as('owner').get(`/volumes/${id}`)).body.state, 'pending_delete')
    assert.equal((await app.as('owner').get('/volumes/by-name/one')).status, 404)
    assert.equal((await app.as('owner').delete(`/volumes/${id}`)).status, 200)
    const removal = { volumeId: id, driver: 'disk', target: 'absent' }
    assert.deepEqual((await app.as('runner').get('/runners/volumes')).body, [removal])
    assert.deepEqual(runner.askedVolumes[0], removal)
    assert.equal((await app.as('owner').post('/sandbox', { volumes: [{ ...volumes[0], volumeId: id }] })).status, 400)

    runner.say({ type: 'volume', report: { volumeId: 'no-such-volume', state: 'absent' } })
    runner.say({ type: 'volume', report: { volumeId: id, state: 'absent' } })
    while ((await app.as('owner').get(`/volumes/${id}`)).status === 200)
      await new Promise((resolve) => setTimeout(resolve, 10))
    assert.deepEqual((await app.as('runner').get('/runners/volumes')).body, [])
    // A late repetition of the runner's report changes nothing.
    const { id: next } = (await app.as('owner').post('/volumes', { name: 'one' })).body
    runner.say({ type: 'volume', report: { volumeId: next, state: 'absent' } })
    runner.say({ type: 'volume', report: { volumeId: id, state: 'absent' } })
    assert.equal((await app.as('owner').get(`/volumes/${next}`)).body.state, 'ready')
  })
})
