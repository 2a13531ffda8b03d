import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { SandboxRow } from '#src/control/sandboxes/record/sandbox.ts'
import { insertSandbox } from '#src/control/sandboxes/record/store.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'
import { checkTotals } from './totals.ts'

const { ours } = organizations
/** Columns of the table `sandboxes` that the database computes itself, so the test does not insert them. */
type Unwritten = { due_at: unknown; label_signature: unknown }
const waiting = { sandboxes: { createWaitSeconds: 20, momentMilliseconds: 20_000 } }

const setQuota = async (app: TestControl, body: object, region = 'local') => {
  const reply = await app.as('admin').patch(`/organizations/${ours}/quota/${region}`, body)
  assert.equal(reply.status, 204, reply.text)
}

const create = async (app: TestControl, name: string, body: object = {}): Promise<string> => {
  const reply = await app.as('member').post('/sandbox', { name, ...body })
  assert.equal(reply.status, 200, reply.text)
  return reply.body.id
}

const used = async (app: TestControl) => {
  const { regionUsage } = (await app.as('viewer').get(`/organizations/${ours}/usage`)).body
  const [{ currentCpuUsage, currentMemoryUsage, currentDiskUsage }] = regionUsage
  return [currentCpuUsage, currentMemoryUsage, currentDiskUsage]
}

const ask = (app: TestControl, verb: string, body?: object) => app.as('member').post(`/sandbox/${verb}`, body)

const stop = async (app: TestControl, id: string) => {
  await ask(app, `${id}/stop`)
  await untilState(app, id, 'stopped')
}

suite('the quota of an organization in a region', () => {
  test('POST /sandbox answers 403 above the organization’s quota, and names the limit, the usage and the requested amount', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    await setQuota(app, { totalCpuQuota: 3, totalMemoryQuota: 10, totalDiskQuota: 9 })
    await create(app, 'first', { cpu: 2 })
    const tooMuch = await ask(app, '', { cpu: 2, disk: 7 })
    assert.deepEqual(
      [tooMuch.status, tooMuch.body.message],
      [
        403,
        'In region local total CPU limit exceeded: the CPU quota of 3 is exceeded: 2 are used, and 2 are asked for; total disk limit exceeded: the disk quota of 9 GiB is exceeded: 3 GiB are used, and 7 GiB are asked for (quota exceeded).',
      ],
    )
    assert.match((await ask(app, '', { memory: 10 })).body.message, /memory quota of 10 GiB .* 1 GiB are used/)
    assert.deepEqual(await used(app), [2, 1, 3])
    assert.equal(runner.asked.length, 1, 'no runner heard of what was refused')
    // The quota of `ours` does not limit another organization.
    assert.equal((await app.as('stranger').post('/sandbox', { cpu: 2 })).status, 200)
    await create(app, 'second')
    assert.deepEqual(await used(app), [3, 2, 6])
  })

  test('a stopped sandbox uses only disk quota; a start above the CPU quota answers 403', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    await setQuota(app, { totalCpuQuota: 2, totalDiskQuota: 6 })
    const one = await create(app, 'one', { cpu: 2 })
    await stop(app, one)
    assert.deepEqual(await used(app), [0, 0, 3])
    await create(app, 'two')
    const refused = await ask(app, 'one/start')
    assert.equal(refused.status, 403)
    assert.match(refused.body.message, /CPU quota of 2 is exceeded: 1 are used, and 2 are asked for/)
    assert.equal((await app.as('viewer').get('/sandbox/one')).body.state, 'stopped')
    assert.match((await ask(app, '')).body.message, /disk quota/)
    await setQuota(app, { totalCpuQuota: 3 })
    assert.equal((await ask(app, 'one/start')).status, 200)
  })

  test('a deleted sandbox uses its quota until its runner reports that the sandbox is gone', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using runner = await connectRunner(app)
    await setQuota(app, { totalCpuQuota: 1 })
    const id = await create(app, 'one')
    runner.behave(() => ({ type: 'silent' }))
    await app.as('owner').delete('/sandbox/one')
    assert.equal((await ask(app, '')).status, 403)
    runner.behave(() => ({ type: 'do' }))
    runner.perform(await runner.untilAsked(({ target }) => target === 'destroyed'))
    await untilState(app, id, 'destroyed')
    await create(app, 'one')
  })

  test('an archived sandbox uses no quota; to restore it, its whole size must fit into the quota', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    await setQuota(app, { totalDiskQuota: 5 })
    const id = await create(app, 'one')
    await ask(app, 'one/archive')
    await untilState(app, id, 'archived')
    assert.deepEqual(await used(app), [0, 0, 0])
    const two = await create(app, 'two')
    assert.match(
      (await ask(app, 'one/start')).body.message,
      /disk quota of 5 GiB .* 3 GiB are used, and 3 GiB are asked/,
    )
    await app.as('owner').delete('/sandbox/two')
    await untilState(app, two, 'destroyed')
    assert.equal((await ask(app, 'one/start')).status, 200)
    await untilState(app, id, 'started')
  })

  test('paused and failed sandboxes use their quota, so that a resume or recover is never refused', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const paused = await create(app, 'paused')
    await ask(app, 'paused/pause')
    await untilState(app, paused, 'paused')
    runner.behave(() => ({ type: 'fail', reason: 'no' }))
    const broken = await create(app, 'broken')
    await untilState(app, broken, 'error')
    runner.behave(() => ({ type: 'do' }))
    assert.deepEqual(await used(app), [2, 2, 6])
    await setQuota(app, { totalCpuQuota: 1 })
    assert.equal((await ask(app, '')).status, 403)
    assert.equal((await ask(app, 'paused/start')).status, 200)
    assert.equal((await ask(app, 'broken/recover')).status, 200)
  })

  test('a resize needs quota for the added size; a reduced size frees quota once the runner has applied it', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    await setQuota(app, { totalCpuQuota: 4, totalDiskQuota: 20 })
    const id = await create(app, 'one', { cpu: 4 })
    await ask(app, '', { name: 'x' })
    assert.equal((await ask(app, 'one/resize', { cpu: 5 })).status, 403)
    runner.behave(() => ({ type: 'silent' }))
    const shrinking = ask(app, 'one/resize', { cpu: 1 })
    const asked = await runner.untilAsked(({ cpu }) => cpu === 1)
    assert.equal((await used(app))[0], 4)
    assert.equal((await ask(app, '')).status, 403)
    runner.report({ sandboxId: id, generation: asked.generation, state: 'started', refused: 'in use' })
    assert.equal((await shrinking).status, 409)
    runner.behave(() => ({ type: 'do' }))
    assert.equal((await ask(app, 'one/resize', { cpu: 1 })).status, 200)
    assert.equal((await used(app))[0], 1)
    await stop(app, id)
    await create(app, 'two', { cpu: 4 })
    // The resize enlarges the disk of a stopped sandbox. During the resize, the sandbox uses no CPU quota and no memory quota.
    runner.behave(() => ({ type: 'silent' }))
    const growing = ask(app, 'one/resize', { disk: 5 })
    const grown = await runner.untilAsked(({ diskGiB }) => diskGiB === 5)
    assert.deepEqual(await used(app), [4, 1, 8])
    runner.perform(grown)
    assert.equal((await growing).status, 200)
    assert.match((await ask(app, 'one/resize', { disk: 18 })).body.message, /disk quota of 20 GiB/)
  })

  test('a failed resize uses quota for the larger of the old and the new size until the sandbox is recovered', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 0 } })
    await using runner = await connectRunner(app)
    await setQuota(app, { totalCpuQuota: 4 })
    const id = await create(app, 'one', { cpu: 4 })
    await untilState(app, id, 'started')
    runner.behave(() => ({ type: 'silent' }))
    await ask(app, 'one/resize', { cpu: 1 })
    app.clock.advance({ minutes: 10 })
    await app.sweep()
    await untilState(app, id, 'error')
    assert.equal((await used(app))[0], 4)
    await ask(app, 'one/recover')
    assert.equal((await used(app))[0], 4)
    runner.perform(await runner.untilAsked(({ generation }) => generation === 3))
    await untilState(app, id, 'started')
    assert.equal((await used(app))[0], 1)
  })

  test('a fork needs as much quota as the sandbox that it copies', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    await setQuota(app, { totalCpuQuota: 3 })
    await create(app, 'one', { cpu: 2 })
    assert.match((await ask(app, 'one/fork', {})).body.message, /2 are used, and 2 are asked for/)
    await setQuota(app, { totalCpuQuota: 4 })
    assert.equal((await ask(app, 'one/fork', {})).status, 200)
    assert.equal((await used(app))[0], 4)
  })

  test('a warm sandbox uses no organization’s quota until a create claims it', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const pool = await app.as('owner').post('/warm-pools', { snapshot: 'default', target: 'local', pool: 2 })
    assert.equal(pool.status, 201, pool.text)
    await setQuota(app, { totalCpuQuota: 1 })
    const isFull = async () => {
      const [row] = await app.database.sql<{ count: number }[]>`
        select count(*) from sandboxes where warm_pool_id is not null and state = 'started'`
      return row?.count === 2
    }
    while (!(await isFull())) await app.sweep()
    assert.deepEqual(await used(app), [0, 0, 0])
    const id = await create(app, 'claimed')
    const [claimed] = await app.database.sql<{ reason: string }[]>`
      select reason from sandbox_events where sandbox_id = ${id} and reason is not null`
    assert.equal(claimed?.reason, 'Claimed from a warm pool.')
    assert.deepEqual(await used(app), [1, 1, 3])
    assert.equal((await ask(app, '')).status, 403)
  })

  test('a sandbox whose image is being built uses no quota, and waits while the quota is full', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    runner.behaveWithImages(() => 'silent')
    await setQuota(app, { totalCpuQuota: 1 })
    const build = { buildInfo: { dockerfileContent: 'FROM alpine' } }
    assert.equal((await ask(app, '', { ...build, cpu: 2 })).status, 403)
    const one = await create(app, 'one', build)
    const two = await create(app, 'two', build)
    assert.deepEqual(await used(app), [0, 0, 0])
    const { image } = runner.askedImages.at(-1)!
    const config = { entrypoint: [], env: {}, user: '', workdir: '/' }
    runner.say({ type: 'image', report: { image, state: 'present', sizeBytes: 1, config } })
    await untilState(app, one, 'started')
    await app.sweep()
    assert.equal((await app.as('viewer').get('/sandbox/two')).body.state, 'pending_build')
    await app.as('owner').delete('/sandbox/one')
    await untilState(app, one, 'destroyed')
    await app.sweep()
    await untilState(app, two, 'started')
  })

  test('if a region enforces quotas, a create there answers 403 without a quota for that region', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    await app.database.sql`update regions set enforces_quota = true where id = 'local'`
    const refused = await ask(app, '')
    assert.deepEqual(
      [refused.status, refused.body.message],
      [403, 'This organization has no quota in the region "local" (quota exceeded, limit exceeded).'],
    )
    await setQuota(app, { totalCpuQuota: 1 })
    await create(app, 'one')
  })
})

suite('`checkTotals`', () => {
  test('if two transactions raise one quota’s usage, the second waits, then counts the change of the first', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const { database } = app
    await setQuota(app, { totalCpuQuota: 2 })
    const one = await create(app, 'one')
    const writeAnother = async (transaction: Transaction, id: string) => {
      const [row] = await transaction<[SandboxRow & Unwritten]>`select * from sandboxes where id = ${one}`
      const { due_at, label_signature, ...copy } = row
      return await insertSandbox(transaction, { ...copy, id, name: id }, { kind: 'user', id: 'x' })
    }
    let second: Promise<void> | undefined
    await database.transaction(async (first) => {
      await checkTotals(first, { from: null, written: await writeAnother(first, 'two'), to: 'started' })
      let isDone = false
      second = database.transaction(async (other) => {
        await checkTotals(other, { from: null, written: await writeAnother(other, 'three'), to: 'started' })
      })
      second
        .catch(() => {})
        .finally(() => {
          isDone = true
        })
      const waits = async () =>
        (
          await database.sql`
          select 1 from pg_locks where locktype = 'advisory' and not granted
            and database = (select oid from pg_database where datname = current_database())`
        ).length > 0
      while (!isDone && !(await waits()));
      assert.equal(isDone, false, 'it did not wait')
    })
    await assert.rejects(second!, /CPU quota of 2 is exceeded: 2 are used, and 1 are asked for/)
    assert.equal((await used(app))[0], 2)
  })
})

suite('the limits of one sandbox', () => {
  test('POST /sandbox answers 403 above the region’s limit per sandbox or, without such a limit, above the organization’s', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    await app.as('admin').patch(`/organizations/${ours}/quota`, { maxCpuPerSandbox: 2, maxMemoryPerSandbox: 2 })
    assert.match((await ask(app, '', { cpu: 3 })).body.message, /cpu 3 is more than the 2 that a sandbox may have/)
    await setQuota(app, { maxCpuPerSandbox: 4, maxMemoryPerSandbox: 1 })
    const id = await create(app, 'one', { cpu: 4 })
    assert.equal((await ask(app, '', { memory: 2 })).status, 403)
    assert.equal((await ask(app, `${id}/resize`, { cpu: 5 })).status, 403)
    const snapshot = { name: 'large', imageName: 'alpine:3', cpu: 5 }
    assert.equal((await app.as('owner').post('/snapshots', snapshot)).status, 403)
    await setQuota(app, { maxCpuPerSandbox: 1 })
    assert.equal((await ask(app, 'one/fork', {})).status, 403)
  })

  test('POST /sandbox answers 403 for too large a disk, unless `autoDeleteInterval` is 0', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    await setQuota(app, { maxDiskPerNonEphemeralSandbox: 5 })
    const refused = await ask(app, '', { disk: 6 })
    assert.match(
      refused.body.message,
      /disk 6 GiB is more than the 5 GiB that a sandbox may have if it is not deleted when it stops/,
    )
    await create(app, 'ephemeral', { disk: 6, autoDeleteInterval: 0 })
    assert.equal((await ask(app, 'ephemeral/autodelete/5')).status, 403)
    assert.equal((await ask(app, 'ephemeral/autodelete/0')).status, 200)
    const id = await create(app, 'kept', { disk: 5 })
    await stop(app, id)
    assert.equal((await ask(app, 'kept/resize', { disk: 6 })).status, 403)
    assert.equal((await ask(app, 'kept/autodelete/5')).status, 200)
  })

  test('if a region limits the lifespan of sandboxes, the limit is the default; a longer lifespan gets 400', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const eternal = await create(app, 'eternal')
    await setQuota(app, { maxSandboxLifespan: 60 })
    const end = (minutes: number) => new Date(app.clock.now().getTime() + minutes * 60_000).toISOString()
    const endOf = async (name: string) => (await app.as('viewer').get(`/sandbox/${name}`)).body.autoDestroyAt
    for (const ttlMinutes of [0, 61]) {
      const refused = await ask(app, '', { ttlMinutes })
      assert.deepEqual([refused.status, /from 1 to 60/.test(refused.body.message)], [400, true], `${ttlMinutes}`)
    }
    await create(app, 'one')
    await create(app, 'two', { ttlMinutes: 30 })
    assert.deepEqual([await endOf('one'), await endOf('two')], [end(60), end(30)])
    assert.equal((await ask(app, 'one/ttl/0')).status, 400)
    assert.equal((await ask(app, 'one/ttl/61')).status, 400)
    assert.equal((await ask(app, 'one/ttl/45')).body.autoDestroyAt, end(45))
    // A fork ends when its parent ends, but at the latest after the longest lifetime (60 minutes).
    app.clock.advance({ seconds: 600 })
    assert.equal((await ask(app, 'two/fork', {})).body.autoDestroyAt, end(20))
    assert.equal((await ask(app, `${eternal}/fork`, {})).body.autoDestroyAt, end(60))
  })
})
