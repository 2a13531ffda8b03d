import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { hashKey } from '#src/control/auth/secret.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'

/** Starts a server with ready runners. `rooms`: how many sandboxes with 1 GiB of memory fit on each runner. */
const startWith = async (rooms: Record<string, number>): Promise<TestControl> => {
  const app = await startControl({ sandboxes: { overcommit: { cpu: 1, memory: 1, disk: 1 } } })
  const { database, clock } = app
  // The server's own runner connects once, so that control knows the default image. Then that runner is drained.
  await using _own = await connectRunner(app)
  await app.as('admin').patch('/runners/local/scheduling', { unschedulable: true })
  for (const [id, room] of Object.entries(rooms)) {
    await database.sql`
      insert into runners (id, region_id, key_hash, state, address, images, cpu, memory_gib, disk_gib, volumes,
        last_heartbeat_at, created_at, updated_at)
      values (${id}, 'local', ${hashKey(id)}, 'ready', 'unix:/simulated.sock', '{default}', 1000, ${room}, 10000, 'disk',
        ${clock.now()}, ${clock.now()}, ${clock.now()})`
  }
  return app
}

const placedOn = async ({ database }: TestControl): Promise<Record<string, number>> =>
  Object.fromEntries(
    (
      await database.sql<{ id: string; count: number }[]>`
        select runner_id as id, count(*)::int as count from sandboxes group by 1 order by 1`
    ).map(({ id, count }) => [id, count]),
  )

const names = (count: number) => Array.from({ length: count }, (_, at) => `host-${String(at).padStart(2, '0')}`)

const create = async (app: TestControl, body: object = {}) => (await app.as('owner').post('/sandbox', body)).status

suite('placement among many runners', () => {
  test('a create finds the only runner with room among 30 runners', async () => {
    await using app = await startWith(Object.fromEntries(names(30).map((id) => [id, id === 'host-17' ? 2 : 0.5])))
    assert.deepEqual([await create(app), await create(app), await create(app)], [200, 200, 503])
    assert.deepEqual(await placedOn(app), { 'host-17': 2 })
  })

  test('concurrent creates fill all runners, and no runner gets more sandboxes than it has room for', async () => {
    await using app = await startWith(Object.fromEntries(names(12).map((id) => [id, 3])))
    const statuses = await Promise.all(Array.from({ length: 20 }, () => create(app)))
    assert.deepEqual(new Set(statuses), new Set([200]))
    // A create skips a runner that another create has locked, so some room may be left. The creates below fill that room.
    for (let left = 16; left > 0; left -= 1) assert.equal(await create(app), 200)
    assert.equal(await create(app), 503)
    assert.deepEqual(await placedOn(app), Object.fromEntries(names(12).map((id) => [id, 3])))
  })

  test('sandboxes are spread evenly over all runners, although each create compares only a few of them', async () => {
    await using app = await startWith(Object.fromEntries(names(24).map((id) => [id, 100])))
    for (let turn = 0; turn < 48; turn += 1) assert.equal(await create(app), 200)
    const most = Math.max(...Object.values(await placedOn(app)))
    assert.ok(most <= 4, `one runner has ${most} of 48 sandboxes, and 2 would be even`)
  })

  test('a sandbox is placed on the runner that has its volume', async () => {
    await using app = await startWith(Object.fromEntries(names(30).map((id) => [id, 100])))
    const { body: volume } = await app.as('owner').post('/volumes', { name: 'data' })
    const volumes = [{ volumeId: volume.id, mountPath: '/data' }]
    for (let turn = 0; turn < 5; turn += 1) assert.equal(await create(app, { volumes }), 200)
    assert.deepEqual(Object.values(await placedOn(app)), [5])
  })
})
