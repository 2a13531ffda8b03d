import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys, organizations } from '#test/control/people.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'

const { ours } = organizations

const setQuota = async (app: TestControl, body: object) =>
  assert.equal((await app.as('admin').patch(`/organizations/${ours}/quota`, body)).status, 204)

const make = (app: TestControl, name: string) => app.as('owner').post('/snapshots', { name, imageName: 'alpine:3.20' })

const count = (replies: { status: number }[], status: number) =>
  replies.filter((reply) => reply.status === status).length

suite('the quota of snapshots', () => {
  test('POST /snapshots answers 403 beyond the organization’s quota, even for concurrent calls, and names quota and usage', async () => {
    await using app = await startControl()
    await setQuota(app, { snapshotQuota: 3 })
    const replies = await Promise.all(Array.from({ length: 12 }, (_, index) => make(app, `s${index}`)))
    assert.deepEqual([count(replies, 200), count(replies, 403)], [3, 9])
    const refused = await make(app, 'one-more')
    assert.equal(
      refused.body.message,
      'Snapshot quota exceeded: the snapshot quota of 3 is exceeded: 3 are used, and 1 is asked for (limit exceeded).',
    )
    const [made] = await app.database.sql<
      { name: string }[]
    >`select name from snapshots where organization_id = ${ours}`
    await app.as('owner').delete(`/snapshots/${made?.name}`)
    assert.equal((await make(app, 'one-more')).status, 200)
  })

  test('POST /snapshots answers 503 if all organizations together have as many images as runners can list', async () => {
    await using app = await startControl()
    await app.database.sql`
      insert into images (name, source, region_id, max_gib, created_at, updated_at)
      select 'x' || n, '{}', 'local', 1, now(), now() from generate_series(1, 50000) n`
    const refused = await make(app, 'one-more')
    assert.deepEqual([refused.status, /has 50000 images/.test(refused.body.message)], [503, true])
    const { items } = (await app.as('owner').get('/snapshots')).body
    assert.deepEqual(
      items.filter(({ general }: { general: boolean }) => !general),
      [],
    )
    await app.database.sql`delete from images where name = 'x1'`
    assert.equal((await make(app, 'one-more')).status, 200)
  })

  test('POST /sandbox/{id}/snapshot answers 403 beyond the snapshot quota, and changes nothing', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using _runner = await connectRunner(app)
    await app.as('member').post('/sandbox', { name: 'box' })
    await setQuota(app, { snapshotQuota: 0 })
    const refused = await app.as('owner').post('/sandbox/box/snapshot', { name: 's' })
    assert.match(refused.body.message, /snapshot quota of 0 is exceeded: 0 are used/)
    assert.deepEqual([refused.status, (await app.as('viewer').get('/sandbox/box')).body.state], [403, 'started'])
  })

  test('POST /snapshots answers 403 while too many snapshots are being made, not counting finished snapshots', async () => {
    await using app = await startControl()
    await setQuota(app, { maxConcurrentSnapshotProcessing: 1 })
    assert.equal((await make(app, 'one')).status, 200)
    assert.match((await make(app, 'two')).body.message, /quota of 1 snapshots in the making/)
    await app.database.sql`update snapshots set state = 'active' where organization_id = ${ours}`
    assert.equal((await make(app, 'two')).status, 200)
    await setQuota(app, { maxConcurrentSnapshotProcessing: 0 })
    assert.equal((await make(app, 'three')).status, 200)
  })

  test('a snapshot fails if its image is larger than the organization’s limit for a snapshot', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using runner = await connectRunner(app)
    await setQuota(app, { maxSnapshotSize: 2 })
    await make(app, 'one')
    const [brought] = (await app.with(keys.runner).get('/runners/images')).body
    assert.equal(brought.maxGiB, 2)
    const { body: box } = await app.as('member').post('/sandbox', { name: 'box' })
    await app.as('owner').post('/sandbox/box/snapshot', { name: 'large' })
    const [large] = await app.database.sql<{ image: string }[]>`select image from snapshots where name = 'large'`
    runner.say({ type: 'image', report: { image: large!.image, state: 'present', sizeBytes: 2.5 * 2 ** 30 } })
    await untilState(app, box.id, 'started')
    const { state, errorReason } = (await app.as('viewer').get('/snapshots/large')).body
    assert.deepEqual([state, errorReason], ['error', 'It has 2.5 GiB, more than the 2 GiB that a snapshot may have.'])
    const [image] = await app.database.sql<
      { wanted: boolean }[]
    >`select wanted from images where name = ${large!.image}`
    assert.equal(image?.wanted ?? false, false)
  })
})
