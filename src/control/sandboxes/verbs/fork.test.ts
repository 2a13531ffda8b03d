import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { create } from '#test/control/box.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { connectRunner, eventsOf, untilState } from '#test/control/simulated-runner.ts'

const waiting = { sandboxes: { createWaitSeconds: 20 } }

const fork = (app: TestControl, of: string, body?: object, key?: string) =>
  app.as('member').post(`/sandbox/${of}/fork`, body, key ? { headers: { 'idempotency-key': key } } : {})

const get = async (app: TestControl, path: string) => (await app.as('viewer').get(`/sandbox/${path}`)).body

const idsOf = async (app: TestControl, path: string): Promise<string[]> =>
  (await get(app, path)).map(({ id }: { id: string }) => id)

suite('POST /sandbox/:sandboxIdOrName/fork', () => {
  test('POST /sandbox/:sandboxIdOrName/fork returns a started copy with its parent’s settings and with new tokens and keys', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app, {
      env: { A: 'b' },
      labels: { team: 'a' },
      user: 'root',
      public: true,
      cpu: 2,
      memory: 3,
      disk: 4,
      autoStopInterval: 7,
      networkAllowList: '10.0.0.0/8',
      ttlMinutes: 60,
    })
    const reply = await fork(app, 'box', { name: 'child' })
    assert.equal(reply.status, 200, reply.text)
    const child = reply.body
    assert.deepEqual([child.name, child.state, child.forkKind], ['child', 'started', 'disk'])
    const parent = await get(app, id)
    assert.deepEqual([parent.state, parent.forkKind], ['started', undefined])
    const own = ['id', 'name', 'forkKind', 'createdAt', 'updatedAt', 'lastActivityAt']
    const shared = (record: object) => Object.fromEntries(Object.entries(record).filter(([key]) => !own.includes(key)))
    assert.deepEqual(shared(child), shared(parent))
    const asked = runner.asked.at(-1)!
    assert.deepEqual([asked.sandboxId, asked.isNew, asked.forkOf], [child.id, true, id])
    const key = (of: string) => app.as('member').get(`/sandbox/${of}/signing-key`)
    assert.notEqual((await key(id)).text, (await key(child.id)).text)
    const rows = await app.database.sql`select distinct preview_token from sandboxes`
    assert.equal(rows.length, 2)
    // Only the child gets an assignment. After the child's first start, its assignments do not name the parent any more.
    assert.equal(runner.asked.length, 2)
    await app.as('member').post('/sandbox/child/stop')
    await untilState(app, child.id, 'stopped')
    assert.deepEqual([runner.asked.at(-1)?.isNew, runner.asked.at(-1)?.forkOf], [false, undefined])
  })

  test('POST /sandbox/:sandboxIdOrName/fork copies stopped and paused sandboxes; the default name is the new id', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app)
    await app.as('member').post('/sandbox/box/pause')
    await untilState(app, id, 'paused')
    const one = (await fork(app, 'box')).body
    assert.deepEqual([one.state, one.name], ['started', one.id])
    await app.as('member').post('/sandbox/box/stop')
    await untilState(app, id, 'stopped')
    assert.equal((await fork(app, 'box')).body.state, 'started')
    assert.equal((await get(app, id)).state, 'stopped')
  })

  test('POST …/fork makes one copy per Idempotency-Key; the same key with another body gets 422', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const parent = await create(app)
    const made = await Promise.all([1, 2, 3].map(() => fork(app, 'box', { name: 'child' }, 'k')))
    assert.deepEqual(new Set(made.map(({ status }) => status)), new Set([200]))
    assert.equal(new Set(made.map(({ body }) => body.id)).size, 1)
    assert.equal((await fork(app, 'box', { name: 'other' }, 'k')).status, 422)
    await app.as('owner').delete('/sandbox/box')
    await untilState(app, parent, 'destroyed')
    assert.equal((await fork(app, 'box', { name: 'child' }, 'k')).body.id, made[0]?.body.id)
  })

  test('if a runner cannot copy the disk for a fork, the copy is in `error`, and `recover` copies again', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    runner.behave(() => ({ type: 'fail', reason: 'The disk is full.' }))
    const child = (await fork(app, 'box', { name: 'child' })).body
    assert.deepEqual([child.state, child.errorReason], ['error', 'The disk is full.'])
    assert.equal((await get(app, id)).state, 'started')
    runner.behave(() => ({ type: 'do' }))
    await app.as('member').post('/sandbox/child/recover')
    await untilState(app, child.id, 'started')
    assert.deepEqual([runner.asked.at(-1)?.isNew, runner.asked.at(-1)?.forkOf], [true, id])
  })

  test('POST /sandbox/:sandboxIdOrName/fork answers 409 for a name in use, 4xx in a wrong state, 503 without room', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app, { capabilities: { diskGiB: 1 } })
    const id = await create(app)
    assert.equal((await fork(app, 'box', { name: 'box' })).status, 409)
    assert.equal((await fork(app, 'box', { name: 'a/b' })).status, 400)
    assert.equal((await fork(app, 'none')).status, 404)
    assert.equal((await app.as('stranger').post('/sandbox/box/fork')).status, 404)
    assert.equal((await app.as('viewer').post('/sandbox/box/fork')).status, 403)
    assert.equal((await fork(app, 'box')).status, 200)
    assert.equal((await fork(app, 'box')).status, 503)
    await app.as('member').post('/sandbox/box/archive')
    await untilState(app, id, 'archived')
    assert.equal((await fork(app, 'box')).status, 400)
    runner.behave(() => ({ type: 'silent' }))
    await app.as('member').post('/sandbox/box/start')
    assert.equal((await fork(app, 'box')).status, 409)
    await app.database.sql`update organizations set suspended = true where id = ${organizations.ours}`
    app.app.sandboxes.callers.forget()
    assert.equal((await fork(app, 'box')).status, 403)
    const [counted] = await app.database.sql`select count(*)::int as n from sandboxes`
    assert.equal(counted?.['n'], 2)
  })
})

suite('the tree of forks', () => {
  test('GET /sandbox/:sandboxIdOrName/forks returns a sandbox’s forks, newest first, and destroyed forks only on request', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app)
    const children: string[] = []
    for (const name of ['one', 'two', 'three']) {
      app.clock.advance({ seconds: 1 })
      children.unshift((await fork(app, 'box', { name })).body.id)
    }
    await fork(app, 'two', { name: 'grandchild' })
    assert.deepEqual(await idsOf(app, 'box/forks'), children)
    await app.as('owner').delete('/sandbox/two')
    await untilState(app, children[1]!, 'destroyed')
    assert.deepEqual(await idsOf(app, 'box/forks'), [children[0], children[2]])
    assert.deepEqual(await idsOf(app, `${id}/forks?includeDestroyed=true`), children)
    assert.deepEqual(await idsOf(app, 'three/forks'), [])
    assert.equal((await app.as('stranger').get(`/sandbox/${id}/forks`)).status, 404)
    assert.equal((await app.as('viewer').get('/sandbox/box/forks?includeDestroyed=perhaps')).status, 400)
  })

  test('GET /sandbox/{id}/parent answers 404 for a destroyed parent; GET /sandbox/{id}/ancestors omits the destroyed parent', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const chain = [await create(app, { name: 'n0' })]
    for (let n = 1; n < 4; n++) chain.push((await fork(app, `n${n - 1}`, { name: `n${n}` })).body.id)
    assert.deepEqual(await idsOf(app, 'n3/ancestors'), chain.slice(0, 3))
    assert.deepEqual(await idsOf(app, 'n0/ancestors'), [])
    assert.equal((await get(app, 'n3/parent')).id, chain[2])
    assert.equal((await app.as('viewer').get('/sandbox/n0/parent')).status, 404)
    await app.as('owner').delete('/sandbox/n2')
    await untilState(app, chain[2]!, 'destroyed')
    assert.equal((await app.as('viewer').get('/sandbox/n3/parent')).status, 404)
    assert.deepEqual(await idsOf(app, 'n3/ancestors'), chain.slice(0, 2))
    // If the row of a destroyed ancestor is deleted, `ancestors` leaves the ancestor out, without an error.
    await app.database.sql`delete from sandboxes where id = ${chain[2]!}`
    assert.deepEqual(await idsOf(app, 'n3/ancestors'), chain.slice(0, 2))
    assert.equal((await app.as('stranger').get('/sandbox/n3/ancestors')).status, 404)
  })
})

suite('POST /sandbox/:sandboxId/evict', () => {
  test('POST /sandbox/:sandboxId/evict destroys a sandbox; its record can be read by its id for a day', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    const reply = await app.as('admin').post(`/sandbox/${id}/evict`)
    assert.deepEqual([reply.status, reply.body.state], [200, 'destroying'])
    await untilState(app, id, 'destroyed')
    const { state, spotEvictedAt } = await get(app, id)
    assert.deepEqual([state, new Date(spotEvictedAt).getTime()], ['destroyed', app.clock.now().getTime()])
    const eviction = (await eventsOf(app, id)).find(({ to_state }) => to_state === 'destroying')
    assert.equal(eviction?.reason, 'Evicted: its room was needed.')
    // The name is free again, so a call with the name finds no sandbox. A call with the id can read the sandbox, but not change it.
    assert.equal((await app.as('viewer').get('/sandbox/box')).status, 404)
    assert.equal((await app.as('member').post(`/sandbox/${id}/start`)).status, 404)
    assert.equal((await app.as('owner').delete(`/sandbox/${id}`)).status, 404)
    assert.equal((await app.as('admin').post(`/sandbox/${id}/evict`)).status, 404)
    assert.equal((await app.as('stranger').get(`/sandbox/${id}`)).status, 404)
    assert.equal(runner.has.has(id), false)
    app.clock.advance({ hours: 23, minutes: 59 })
    await app.sweep()
    assert.equal((await get(app, id)).spotEvictedAt, spotEvictedAt)
    app.clock.advance({ minutes: 1 })
    await app.sweep()
    assert.equal((await app.as('viewer').get(`/sandbox/${id}`)).status, 404)
    assert.equal((await app.database.sql`select id from sandboxes`).length, 0)
  })

  test('POST /sandbox/:sandboxId/evict answers 403 to all but operators', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app)
    for (const who of ['owner', 'member', 'stranger'] as const) {
      assert.equal((await app.as(who).post(`/sandbox/${id}/evict`)).status, 403)
    }
    assert.equal((await get(app, id)).state, 'started')
    assert.equal((await app.as('admin').post('/sandbox/box/evict')).status, 404)
  })
})
