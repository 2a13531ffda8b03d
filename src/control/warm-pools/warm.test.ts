import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { inBetween } from '#test/control/in-between.ts'
import { keys, organizations } from '#test/control/people.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'

const waits = { createWaitSeconds: 20 }

/** Runs sweeps until all warm sandboxes are started and a sweep changes nothing. Returns their number. */
const fill = async (app: TestControl) => {
  let before = ''
  for (;;) {
    await app.sweep()
    const rows = await app.database.sql`
      select id, state from sandboxes where warm_pool_id is not null and state <> 'destroyed' order by id`
    const now = JSON.stringify(rows)
    if (now === before && rows.every(({ state }) => state === 'started')) return rows.length
    before = now
  }
}

const create = async (app: TestControl, body: object = {}) => {
  const made = await app.as('owner').post('/sandbox', body)
  assert.equal(made.status, 200, made.text)
  return made.body
}

const pool = async (app: TestControl, size: number, snapshot = 'default') => {
  const made = await app.as('owner').post('/warm-pools', { snapshot, pool: size })
  assert.equal(made.status, 201, made.text)
  return made.body
}

const idsOf = async (app: TestControl, query = '') =>
  (await app.as('owner').get(`/sandbox${query}`)).body.items.map(({ id }: { id: string }) => id)

suite('a warm pool', () => {
  test('a warm pool is filled, and GET /sandbox lists its sandboxes only with `includeWarm`', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using _runner = await connectRunner(app)
    await pool(app, 3)
    assert.equal(await fill(app), 3)
    assert.deepEqual(await idsOf(app), [])
    assert.equal((await idsOf(app, '?includeWarm=true')).length, 3)
    const [seen] = (await app.as('owner').get('/warm-pools')).body
    assert.deepEqual([seen.pool, seen.currentSize, seen.snapshot, seen.target], [3, 3, 'default', 'local'])
  })

  test('a create claims the oldest sandbox of a warm pool; the sandbox gets all settings of the create', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using runner = await connectRunner(app)
    await pool(app, 2)
    await fill(app)
    const ready = await idsOf(app, '?includeWarm=true&sort=createdAt&order=asc')
    const before = runner.asked.length
    const made = await create(app, {
      name: 'mine',
      env: { A: '1' },
      labels: { b: '2' },
      networkBlockAll: true,
      autoStopInterval: 7,
      cpu: 2,
    })
    assert.equal(made.id, ready[0])
    assert.deepEqual(
      [made.name, made.state, made.env, made.labels, made.cpu, made.autoStopInterval, made.warmPoolId],
      ['mine', 'started', { A: '1' }, { b: '2' }, 2, 7, undefined],
    )
    // The create asked for a sandbox without network, so control answered only after the runner had the new settings.
    const [told] = runner.asked.slice(before).filter(({ sandboxId }) => sandboxId === made.id)
    assert.deepEqual([told?.env, told?.network.blockAll, told?.cpu, told?.isNew ?? false], [{ A: '1' }, true, 2, false])
    assert.deepEqual(await idsOf(app), [made.id])
    assert.equal(await fill(app), 2)
  })

  test('a claimed sandbox is `started` before its runner has answered; its toolbox calls wait for the runner', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using runner = await connectRunner(app)
    await pool(app, 1)
    await fill(app)
    runner.behave(() => ({ type: 'silent' }))
    const made = await create(app, { env: { A: '1' } })
    const asked = await runner.untilAsked(({ env }) => env['A'] === '1')
    assert.deepEqual([made.id, made.state], [asked.sandboxId, 'started'])
    const question = {
      sandboxIdOrName: made.id,
      credentials: [{ kind: 'bearer', token: keys.owner }],
      countsAsActivity: false,
    }
    const access = await app.as('proxy').post('/proxy/access', question)
    assert.deepEqual([access.body.isStarted, access.body.leastGeneration], [true, asked.generation])
    const events = (await app.as('owner').get(`/sandbox/${made.id}/events?order=asc`)).body.items
    assert.deepEqual(events.map(({ to, reason }: { to: string; reason: string }) => [to, reason]).at(-1), [
      'started',
      'Claimed from a warm pool.',
    ])
  })

  test('a create that claims a sandbox and limits its network waits until the runner has set the limits', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using runner = await connectRunner(app)
    await pool(app, 1)
    await fill(app)
    runner.behave(() => ({ type: 'silent' }))
    let answered = false
    const creating = create(app, { networkAllowList: '10.0.0.0/8' }).finally(() => {
      answered = true
    })
    const asked = await runner.untilAsked(({ network }) => network.allowList !== null)
    const [seen] = (await app.as('owner').get('/sandbox')).body.items
    assert.deepEqual([seen.id, seen.state, answered], [asked.sandboxId, 'started', false])
    runner.perform(asked)
    assert.equal((await creating).state, 'started')
  })

  test('if a runner cannot limit the network of a claimed sandbox, the sandbox is in error with the reason', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using runner = await connectRunner(app)
    await pool(app, 1)
    await fill(app)
    runner.behave(() => ({ type: 'fail', reason: 'The network could not be closed.' }))
    const made = await create(app, { networkBlockAll: true })
    assert.deepEqual([made.state, made.errorReason], ['error', 'The network could not be closed.'])
  })

  test('each warm sandbox is claimed once, however many creates compete; other creates make new sandboxes', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using _runner = await connectRunner(app)
    await pool(app, 3)
    await fill(app)
    const ready = new Set(await idsOf(app, '?includeWarm=true'))
    const made = await Promise.all(Array.from({ length: 8 }, () => create(app)))
    assert.equal(new Set(made.map(({ id }) => id)).size, 8)
    assert.equal(made.filter(({ id }) => ready.has(id)).length, 3)
    assert.ok(made.every(({ state }) => state === 'started'))
  })

  test('a create never claims a warm sandbox of another organization', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using _runner = await connectRunner(app)
    assert.equal((await app.as('stranger').post('/warm-pools', { snapshot: 'default', pool: 1 })).status, 201)
    await fill(app)
    await create(app)
    assert.equal((await app.as('stranger').get('/warm-pools')).body[0].currentSize, 1)
    assert.deepEqual(await idsOf(app, '?includeWarm=true').then((ids) => ids.length), 1)
  })

  test('a create with a name in use answers 409, and the warm sandbox stays in its pool', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using _runner = await connectRunner(app)
    await create(app, { name: 'mine' })
    await pool(app, 1)
    await fill(app)
    assert.equal((await app.as('owner').post('/sandbox', { name: 'mine' })).status, 409)
    assert.equal((await app.as('owner').get('/warm-pools')).body[0].currentSize, 1)
  })

  test('a create uses the warm pool of the snapshot that it found, even if the snapshot is renamed meanwhile', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using _runner = await connectRunner(app)
    const snapshots = await app.database.sql<{ id: string }[]>`
      insert into snapshots (organization_id, name, state, image, cpu, memory_gib, disk_gib)
      select ${organizations.ours}, name, 'active', 'default', 1, 1, 3 from unnest(array['mine', 'next']) as name
      returning id`
    await pool(app, 1, 'next')
    await fill(app)
    // `inBetween` stops the create at the query for a warm sandbox, after the snapshot was read. `inBetween` finds the query by the
    // text `statement`, which no other query contains.
    const { id, snapshot } = await inBetween(
      app,
      { reading: 'warm_pools', statement: 'for no key update of sandboxes skip locked' },
      () => create(app, { snapshot: 'mine' }),
      async (transaction) => {
        await transaction`update snapshots set name = 'before' where name = 'mine'`
        await transaction`update snapshots set name = 'mine' where name = 'next'`
      },
    )
    const [row] = await app.database.sql`select snapshot_id from sandboxes where id = ${id}`
    assert.deepEqual([snapshot, row?.['snapshot_id']], ['mine', snapshots[0]?.id])
    assert.equal((await app.as('owner').get('/warm-pools')).body[0].currentSize, 1)
  })

  test('a warm pool that shrinks does not remove a sandbox that was claimed in the meantime', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using _runner = await connectRunner(app)
    const { id: poolId } = await pool(app, 1)
    await fill(app)
    const [ready] = await idsOf(app, '?includeWarm=true')
    await app.as('owner').patch(`/warm-pools/${poolId}`, { pool: 0 })
    // Another caller claims the sandbox after the sweep has chosen it as surplus, and before the sweep writes.
    await inBetween(app, { writing: 'sandboxes' }, app.sweep, async (transaction) => {
      await transaction`update sandboxes set warm_pool_id = null, version = version + 1 where id = ${ready}`
    })
    const { state, desiredState } = (await app.as('owner').get(`/sandbox/${ready}`)).body
    assert.deepEqual([state, desiredState], ['started', 'started'])
  })

  test('warm sandboxes are removed if a create needs their room on a runner', async () => {
    await using app = await startControl({ sandboxes: { ...waits, overcommit: { cpu: 1, memory: 1, disk: 1 } } })
    await using _runner = await connectRunner(app, { capabilities: { cpu: 2, memoryGiB: 2, diskGiB: 6 } })
    await pool(app, 2)
    assert.equal(await fill(app), 2)
    await pool(app, 0, 'default').catch(() => {})
    for (let made = 0; made < 2; made++) await create(app)
    assert.equal((await app.as('owner').post('/sandbox', {})).status, 503)
    // While no runner has room, the pool is not filled again, and its record shows the reason.
    await app.sweep()
    const reason = async () => (await app.as('owner').get('/warm-pools')).body[0].errorReason
    assert.match(await reason(), /room/)
    for (const id of await idsOf(app)) {
      await app.as('owner').delete(`/sandbox/${id}`)
      await untilState(app, id, 'destroyed')
    }
    // After a failure, control does not fill the pool for a minute. The test ends this pause.
    await app.database.sql`update warm_pools set not_before = null`
    assert.equal(await fill(app), 2)
    assert.equal(await reason(), null)
  })

  test('a warm sandbox can be read by id; all other calls on it answer 404', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using runner = await connectRunner(app)
    await pool(app, 1)
    await fill(app)
    const [id] = await idsOf(app, '?includeWarm=true')
    assert.equal((await app.as('owner').get(`/sandbox/${id}`)).body.warmPoolId !== undefined, true)
    const before = runner.asked.length
    for (const verb of ['stop', 'pause', 'archive', 'fork', 'start', 'recover', 'backup'])
      assert.equal((await app.as('owner').post(`/sandbox/${id}/${verb}`, {})).status, 404, verb)
    assert.equal((await app.as('owner').post(`/sandbox/${id}/resize`, { cpu: 2 })).status, 404)
    assert.equal((await app.as('owner').delete(`/sandbox/${id}`)).status, 404)
    const question = {
      sandboxIdOrName: id,
      credentials: [{ kind: 'bearer', token: keys.owner }],
      countsAsActivity: true,
    }
    assert.equal((await app.as('proxy').post('/proxy/access', question)).status, 404)
    assert.equal(runner.asked.length, before)
    assert.equal((await create(app)).id, id)
    assert.equal((await app.as('proxy').post('/proxy/access', question)).status, 200)
  })

  test('if a runner is drained, its warm sandboxes are removed, and new ones start on another runner', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using _local = await connectRunner(app)
    const { body } = await app.as('admin').post('/runners', { name: 'second' })
    await using _second = await connectRunner(app, { token: body.apiKey })
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: true })
    await pool(app, 2)
    await fill(app)
    const runners = async () =>
      (
        await app.database.sql`select runner_id from sandboxes where warm_pool_id is not null and state = 'started'`
      ).map((row) => row['runner_id'])
    assert.deepEqual(await runners(), ['second', 'second'])
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: false })
    await app.as('admin').patch('/runners/second/scheduling', { unschedulable: true })
    assert.equal((await app.as('owner').get('/warm-pools')).body[0].currentSize, 0)
    assert.equal(await fill(app), 2)
    assert.deepEqual(await runners(), ['local', 'local'])
    assert.equal((await app.as('admin').delete('/runners/second')).status, 204)
  })

  test('while its only runner is drained, a warm pool is empty and shows why; after the drain, it is filled', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using _runner = await connectRunner(app)
    await pool(app, 2)
    assert.equal(await fill(app), 2)
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: true })
    assert.equal(await fill(app), 0)
    assert.deepEqual(await idsOf(app, '?includeWarm=true'), [])
    assert.match((await app.as('owner').get('/warm-pools')).body[0].errorReason, /"local" has it and is drained/)
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: false })
    await app.pass({ minutes: 2 })
    assert.equal(await fill(app), 2)
  })

  test('a warm pool replaces a stopped sandbox, and is emptied when its snapshot becomes inactive', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using runner = await connectRunner(app)
    await pool(app, 1)
    await fill(app)
    const [broken] = await idsOf(app, '?includeWarm=true')
    const { generation } = runner.asked.at(-1)!
    runner.report({ sandboxId: broken, generation, state: 'stopped' })
    await untilState(app, broken, 'stopped')
    assert.equal(await fill(app), 1)
    assert.notDeepEqual(await idsOf(app, '?includeWarm=true'), [broken])
    await app.database.sql`update snapshots set state = 'inactive' where name = 'default'`
    assert.equal(await fill(app), 0)
  })
})

suite('a claimed sandbox', () => {
  test('a claimed sandbox that cannot get the requested settings is in error, with the reason', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using runner = await connectRunner(app)
    await pool(app, 1)
    await fill(app)
    runner.behave(() => ({ type: 'silent' }))
    const creating = create(app, { disk: 5 })
    const { sandboxId, generation } = await runner.untilAsked(({ diskGiB }) => diskGiB === 5)
    runner.report({ sandboxId, generation, state: 'started', refused: 'The disk holds more than that.' })
    const { state, errorReason } = await creating
    assert.deepEqual([state, errorReason], ['error', 'The disk holds more than that.'])
  })
})

suite('the warm pools of the server itself', () => {
  test('the server’s own warm pools grow and shrink with the number of creates, up to the operator’s limit', async () => {
    await using app = await startControl({ sandboxes: { ...waits, mostWarm: 3 } })
    await using _runner = await connectRunner(app)
    assert.equal(await fill(app), 0)
    await create(app)
    assert.equal(await fill(app), 1)
    for (let made = 0; made < 6; made++) await create(app)
    assert.equal(await fill(app), 3)
    app.clock.advance({ hours: 2 })
    assert.equal(await fill(app), 0)
    // The sandboxes of the server's own warm pools have no owner, so none of them belongs to the organization.
    const [seen] = await app.database.sql<{ count: number }[]>`
      select count(*) from sandboxes where warm_pool_id is not null and organization_id = ${organizations.ours}`
    assert.equal(seen?.count, 0)
  })

  test('the server’s own warm pools shrink if creates become fewer', async () => {
    await using app = await startControl({ sandboxes: { ...waits, mostWarm: 8 } })
    await using _runner = await connectRunner(app)
    for (let made = 0; made < 8; made++) await create(app)
    assert.equal(await fill(app), 8)
    await app.pass({ minutes: 10 })
    assert.equal(await fill(app), 2)
  })

  test('a warm pool is empty after a month without creates, and is filled again after the next create', async () => {
    await using app = await startControl({ sandboxes: { ...waits, mostWarm: 8 } })
    await using _runner = await connectRunner(app)
    await create(app)
    assert.equal(await fill(app), 1)
    await app.pass({ hours: 24 * 30 })
    assert.equal(await fill(app), 0)
    await create(app)
    assert.equal(await fill(app), 1)
    await app.database.sql`update warm_pools set demand_at = demand_at + interval '10 days'`
    await create(app)
    assert.equal(await fill(app), 2)
  })

  test('creates that are refused do not make the server’s own warm pools grow', async () => {
    await using app = await startControl({ sandboxes: { ...waits, mostWarm: 8 } })
    await using _runner = await connectRunner(app)
    await create(app, { name: 'mine' })
    for (let n = 0; n < 5; n++) assert.equal((await app.as('owner').post('/sandbox', { name: 'mine' })).status, 409)
    assert.equal(await fill(app), 1)
  })

  test('the server has no warm pools of its own if the operator disables them', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using _runner = await connectRunner(app)
    await create(app)
    assert.equal(await fill(app), 0)
  })
})

suite('GET /warm-pools', () => {
  test('GET /warm-pools returns only the organization’s own pools', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    await pool(app, 0)
    assert.equal((await app.as('viewer').get('/warm-pools')).body.length, 1)
    assert.deepEqual((await app.as('stranger').get('/warm-pools')).body, [])
  })
})

suite('POST /warm-pools', () => {
  test('POST /warm-pools answers 409 if the snapshot’s pool exists, 400 for an unknown snapshot, 404 for an unknown region', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    await pool(app, 0)
    const status = async (body: object) => (await app.as('owner').post('/warm-pools', body)).status
    assert.equal(await status({ snapshot: 'default', pool: 1 }), 409)
    assert.equal(await status({ snapshot: 'none', pool: 1 }), 400)
    assert.equal(await status({ snapshot: 'default', pool: 1, target: 'none' }), 404)
    // A pool is refused if a create with the pool's snapshot and region would be refused.
    await app.database.sql`update regions set enforces_quota = true where id = 'local'`
    assert.equal(await status({ snapshot: 'default', pool: 1 }), 403)
    const now = app.clock.now()
    await app.database.sql`
      insert into region_quotas (organization_id, region_id, sandbox_class, max_cpu_per_sandbox, created_at, updated_at)
      values (${organizations.ours}, 'local', 'container', 0, ${now}, ${now})`
    assert.equal(await status({ snapshot: 'default', pool: 1 }), 403)
    await app.database.sql`update region_quotas set max_cpu_per_sandbox = null`
    for (const size of [-1, 1.5, 101, '1', null]) assert.equal(await status({ snapshot: 'default', pool: size }), 400)
    assert.equal((await app.as('viewer').post('/warm-pools', { snapshot: 'default', pool: 1 })).status, 403)
  })
})

suite('PATCH /warm-pools/{warmPoolId}', () => {
  test('PATCH /warm-pools/{warmPoolId} with size 0 empties the pool, and answers 404 for another organization’s pool', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using _runner = await connectRunner(app)
    const { id } = await pool(app, 2)
    await fill(app)
    assert.equal((await app.as('owner').patch(`/warm-pools/${id}`, { pool: 0 })).body.pool, 0)
    assert.equal(await fill(app), 0)
    assert.equal((await app.as('stranger').patch(`/warm-pools/${id}`, { pool: 1 })).status, 404)
  })
})

suite('DELETE /warm-pools/{warmPoolId}', () => {
  test('DELETE /warm-pools/{warmPoolId} deletes the pool’s unclaimed sandboxes, and answers 404 for another organization’s pool', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using runner = await connectRunner(app)
    const { id } = await pool(app, 1)
    await fill(app)
    assert.equal((await app.as('stranger').delete(`/warm-pools/${id}`)).status, 404)
    assert.equal((await app.as('owner').delete(`/warm-pools/${id}`)).status, 204)
    await app.sweep()
    await runner.untilAsked(({ target }) => target === 'destroyed')
    assert.equal(await fill(app), 0)
  })
})
