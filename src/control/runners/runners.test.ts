import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { suite, test } from 'node:test'
import { WebSocket } from 'ws'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys } from '#test/control/people.ts'
import { connectRunner, eventsOf, untilState } from '#test/control/simulated-runner.ts'

const waiting = { sandboxes: { createWaitSeconds: 20 } }

const create = async (app: TestControl, body: object = {}): Promise<string> =>
  (await app.as('member').post('/sandbox', { name: 'box', ...body })).body.id

const report = (app: TestControl, id: string, body: object) => app.as('runner').put(`/sandbox/${id}/state`, body)

suite('GET /sandbox/for-runner', () => {
  test('GET /sandbox/for-runner returns the runner’s sandboxes, each with its assignment', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    const { status, body } = await app.as('runner').get('/sandbox/for-runner')
    assert.equal(status, 200)
    assert.deepEqual(
      body.map((each: { id: string; assignment: unknown }) => [each.id, each.assignment]),
      // After the first start, the field `isNew` is false. If the disk is missing now, the runner must not make a new disk.
      [[id, { ...runner.asked[0], isNew: false, isRunning: true }]],
    )
  })

  test('with the query parameter `envOnce`, GET /sandbox/for-runner returns a sandbox’s variables in `env`, but not in `assignment`', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    await create(app, { env: { HELLO: 'world' } })
    const told = async (query: string) => {
      const [{ env, assignment }] = (await app.as('runner').get(`/sandbox/for-runner${query}`)).body
      return [env, assignment.env, assignment.target]
    }
    assert.deepEqual(await told('?envOnce=true'), [{ HELLO: 'world' }, undefined, 'started'])
    assert.deepEqual(await told(''), [{ HELLO: 'world' }, { HELLO: 'world' }, 'started'])
  })

  test('GET /sandbox/for-runner filters by state, and leaves out sandboxes under way if the runner requests that', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    const count = async (query: string) => (await app.as('runner').get(`/sandbox/for-runner${query}`)).body.length
    assert.equal(await count('?states=started,stopped'), 1)
    assert.equal(await count('?states=stopped'), 0)
    assert.equal(await count('?skipReconcilingSandboxes=true'), 1)
    runner.behave(() => ({ type: 'silent' }))
    await app.as('member').post(`/sandbox/${id}/stop`)
    assert.equal(await count('?skipReconcilingSandboxes=true'), 0)
    assert.equal(await count(''), 1)
    assert.equal((await app.as('runner').get('/sandbox/for-runner?states=flying')).status, 400)
  })

  test('GET /sandbox/for-runner returns pages in the order of ids', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const ids = (await Promise.all(['a', 'b', 'c'].map((name) => create(app, { name })))).sort()
    const page = async (query: string) =>
      (await app.as('runner').get(`/sandbox/for-runner?${query}`)).body.map(({ id }: { id: string }) => id)
    assert.deepEqual(await page('limit=2'), ids.slice(0, 2))
    assert.deepEqual(await page(`limit=2&after=${ids[1]}`), ids.slice(2))
    assert.deepEqual(await page(''), ids)
    assert.equal((await app.as('runner').get('/sandbox/for-runner?limit=501')).status, 400)
  })

  test('GET /sandbox/for-runner answers 403 to users, and 401 without a credential', async () => {
    await using app = await startControl()
    assert.equal((await app.as('owner').get('/sandbox/for-runner')).status, 403)
    assert.equal((await app.as('nobody').get('/sandbox/for-runner')).status, 401)
    assert.equal((await app.with('dtn_wrong').get('/sandbox/for-runner')).status, 401)
  })
})

suite('PUT /sandbox/:sandboxId/state', () => {
  test('PUT /sandbox/:sandboxId/state stores a runner’s report; a repeated report changes nothing', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 0 } })
    await using runner = await connectRunner(app)
    runner.behave(() => ({ type: 'silent' }))
    const id = await create(app)
    for (let n = 0; n < 3; n++) {
      const reply = await report(app, id, { state: 'started', generation: 1 })
      assert.deepEqual([reply.status, reply.text], [200, ''])
    }
    assert.equal((await app.as('member').get('/sandbox/box')).body.state, 'started')
    assert.equal((await eventsOf(app, id)).length, 2)
  })

  test('PUT /sandbox/:sandboxId/state applies a report to the stored state, even if another process wrote that state', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 0 } })
    await using runner = await connectRunner(app)
    runner.behave(() => ({ type: 'silent' }))
    const id = await create(app)
    const { sql } = app.database
    const state = async () => (await app.as('member').get('/sandbox/box')).body.state
    // Changes the row as another control process does when it finds that the sandbox is stuck.
    await sql`update sandboxes set state = 'error', error_reason = 'late', version = version + 1 where id = ${id}`
    assert.equal((await report(app, id, { state: 'started', generation: 1 })).status, 200)
    assert.equal(await state(), 'started')
    await app.as('member').post('/sandbox/box/stop')
    // Changes the row as another control process does when a caller starts the sandbox.
    await sql`
      update sandboxes set state = 'starting', desired_state = 'started', generation = 3, version = version + 1
      where id = ${id}`
    assert.equal((await report(app, id, { state: 'stopped', generation: 2 })).status, 409)
    assert.equal(await state(), 'starting')
  })

  test('PUT /sandbox/:sandboxId/state answers 409 for an older generation, and changes nothing', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    runner.behave(() => ({ type: 'silent' }))
    await app.as('member').post('/sandbox/box/stop')
    assert.equal((await report(app, id, { state: 'stopped', generation: 1 })).status, 409)
    assert.equal((await app.as('member').get('/sandbox/box')).body.state, 'stopping')
    assert.equal((await report(app, id, { state: 'stopped', generation: 2 })).status, 200)
    assert.equal((await app.as('member').get('/sandbox/box')).body.state, 'stopped')
  })

  test('PUT /sandbox/:sandboxId/state applies a report without a generation to the current generation', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app)
    assert.equal((await report(app, id, { state: 'error', errorReason: 'it broke', recoverable: true })).status, 200)
    const { state, errorReason, recoverable } = (await app.as('member').get('/sandbox/box')).body
    assert.deepEqual([state, errorReason, recoverable], ['error', 'it broke', true])
  })

  test('PUT /sandbox/:sandboxId/state answers 400 if a report without a generation says that a stopped sandbox runs', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app)
    await app.as('member').post('/sandbox/box/stop')
    await untilState(app, id, 'stopped')
    for (const state of ['started', 'paused']) assert.equal((await report(app, id, { state })).status, 400, state)
    assert.equal((await report(app, id, { state: 'stopped' })).status, 200)
    assert.equal((await app.as('member').get('/sandbox/box')).body.state, 'stopped')
  })

  test('PUT /sandbox/:sandboxId/state answers 400 for an unknown or impossible state, 404 to another runner', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app)
    for (const state of ['creating', 'archived', 'flying', 7])
      assert.equal((await report(app, id, { state })).status, 400)
    assert.equal((await report(app, 'unknown', { state: 'started' })).status, 404)
    await app.database.sql`
      insert into runners (id, region_id, key_hash, created_at, updated_at) values ('other', 'local', 'x', now(), now())`
    await app.database.sql`update sandboxes set runner_id = 'other' where id = ${id}`
    assert.equal((await report(app, id, { state: 'stopped' })).status, 404)
    assert.equal((await app.as('owner').put(`/sandbox/${id}/state`, { state: 'stopped' })).status, 403)
    assert.equal((await app.as('nobody').put(`/sandbox/${id}/state`, { state: 'stopped' })).status, 401)
    assert.equal((await app.as('member').get('/sandbox/box')).body.state, 'started')
  })

  test('PUT /sandbox/:sandboxId/state stores why a sandbox ended by itself, and the sandbox stays stopped', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    await report(app, id, { state: 'stopped', generation: 1, cause: { oomKilled: true, exitCode: 137 } })
    const { state, desiredState, errorReason } = (await app.as('member').get('/sandbox/box')).body
    assert.deepEqual([state, desiredState, errorReason], ['stopped', 'stopped', 'It ran out of memory and was killed.'])
    const asked = await runner.untilAsked(({ target }) => target === 'stopped')
    assert.equal(asked.generation, 2)
    assert.equal((await app.as('member').post('/sandbox/box/start')).body.errorReason, undefined)
  })

  test('control shortens a runner’s long error reason, and removes characters that cannot be stored', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    const detail = `a\0b\ud800${'x'.repeat(100_000)}`
    runner.report({
      sandboxId: id,
      generation: 1,
      state: 'error',
      recoverable: true,
      errorReason: detail,
      cause: { detail },
    })
    await untilState(app, id, 'error')
    const { errorReason } = (await app.as('member').get('/sandbox/box')).body
    assert.match(errorReason, /^ab\ufffdx+$/)
    assert.equal(errorReason.length, 2000)
  })

  test('a sandbox becomes `error` if its runner reports the sandbox gone; then it cannot be recovered', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app)
    await report(app, id, { state: 'destroyed', generation: 1 })
    const { state, recoverable, errorReason } = (await app.as('member').get('/sandbox/box')).body
    assert.deepEqual([state, recoverable], ['error', false])
    assert.match(errorReason, /no longer has/)
    assert.equal((await app.as('owner').delete('/sandbox/box')).status, 200)
  })
})

suite('GET /runners/link', () => {
  const open = async (app: TestControl, key: string | undefined) => {
    const url = (await app.listen()).replace('http', 'ws')
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
    return new WebSocket(`${url}/api/runners/link`, { headers })
  }

  test('GET /runners/link answers 401 without a credential, 403 to users, and 400 without a WebSocket upgrade', async () => {
    await using app = await startControl()
    const socket = await open(app, undefined)
    const [, refusal] = await once(socket, 'unexpected-response')
    assert.equal(refusal.statusCode, 401)
    assert.equal((await app.as('owner').get('/runners/link')).status, 403)
    assert.equal((await app.as('runner').get('/runners/link')).status, 400)
  })

  test('an invalid message closes a runner’s link with code 1008, and the runner may connect again', async () => {
    await using app = await startControl()
    const url = (await app.listen()).replace('http', 'ws')
    for (const wrong of ['{', '{}', '{"type":"hello"}', '{"type":"report","report":{"state":"creating"}}', '[]', '']) {
      const socket = new WebSocket(`${url}/api/runners/link`, {
        headers: { authorization: `Bearer ${keys.runner}` },
      })
      await once(socket, 'open')
      socket.send(wrong)
      const [code] = await once(socket, 'close')
      assert.equal(code, 1008, wrong)
    }
  })

  test('a runner may report 20,000 images when it connects to control', async () => {
    await using app = await startControl(waiting)
    const images = Array.from({ length: 20_000 }, () => `img-${randomUUID()}`)
    await using _runner = await connectRunner(app, { images: ['default', ...images] })
    await create(app)
  })

  test('a report that a runner sends twice changes nothing the second time', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    runner.behave(() => ({ type: 'twice' }))
    const id = await create(app)
    await app.as('member').post('/sandbox/box/stop')
    await untilState(app, id, 'stopped')
    assert.equal((await eventsOf(app, id)).length, 4)
  })

  test('control refuses a report for an older generation; the refusal contains the current generation', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    runner.behave(({ generation }) => ({
      type: runner.asked.filter((a) => a.generation === generation).length > 1 ? 'do' : 'stale',
    }))
    await app.as('member').post('/sandbox/box/stop')
    await untilState(app, id, 'stopped')
    assert.deepEqual(
      runner.asked.map(({ generation }) => generation),
      [1, 2, 2],
    )
  })

  test('if a runner’s link is cut during a stop, the stop completes after the runner reconnects', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    runner.behave(() => ({ type: 'silent' }))
    await app.as('member').post('/sandbox/box/stop')
    await runner.untilAsked(({ target }) => target === 'stopped')
    await runner.cut()
    runner.behave(() => ({ type: 'do' }))
    await runner.link()
    await untilState(app, id, 'stopped')
  })

  test('a silent runner becomes ready with its next heartbeat', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const stateOf = async () => (await app.database.sql`select state from runners`)[0]?.['state']
    assert.equal(await stateOf(), 'ready')
    app.clock.advance({ seconds: 21 })
    await app.sweep()
    assert.equal(await stateOf(), 'unresponsive')
    runner.say({ type: 'alive' })
    while ((await stateOf()) !== 'ready') await new Promise(setImmediate)
    assert.equal((await app.as('member').post('/sandbox', {})).status, 200)
  })
})
