import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'

const waiting = { sandboxes: { createWaitSeconds: 5 } }

/** Each test adds its own runners. Every server has the runner "local" too. */
suite('GET /runners, GET /runners/current', () => {
  let app: TestControl
  before(async () => {
    app = await startControl(waiting)
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
  })

  const add = async (id: string): Promise<string> => {
    const { status, body } = await app.as('admin').post('/runners', { name: id })
    assert.deepEqual([status, body.id, body.regionId], [201, id, 'local'])
    return body.apiKey
  }
  const stateOf = async (id: string) =>
    (await app.as('admin').get('/runners')).body.find((runner: { id: string }) => runner.id === id)?.state

  test('POST /runners shows the new runner’s token once, and the runner can use that token', async () => {
    const token = await add('one')
    const { status, body } = await app.with(token).get('/runners/current')
    assert.deepEqual([status, body], [200, { id: 'one', regionId: 'local' }])
    assert.doesNotMatch((await app.as('admin').get('/runners')).text, new RegExp(token))
    assert.equal(await stateOf('one'), 'initializing')
  })

  test('POST /runners answers 400 for an invalid name or region, and 409 for a name in use', async () => {
    for (const body of [
      {},
      { name: '' },
      { name: 'Über' },
      { name: 'a/b' },
      { name: '-a' },
      { name: 'x', regionId: 'nowhere' },
    ])
      assert.equal((await app.as('admin').post('/runners', body)).status, 400, JSON.stringify(body))
    assert.equal((await app.as('admin').post('/runners', { name: 'local' })).status, 409)
  })

  test('endpoints for runners answer 401 without a credential, 403 to owners, 404 for unknown ids', async () => {
    for (const [method, path] of [
      ['GET', '/runners'],
      ['POST', '/runners'],
      ['GET', '/runners/local'],
      ['GET', '/runners/by-sandbox/any'],
      ['PATCH', '/runners/local/scheduling'],
      ['DELETE', '/runners/local'],
    ] as const) {
      assert.equal((await app.as('nobody').send(method, path, '{}')).status, 401)
      assert.equal((await app.as('owner').send(method, path, '{}')).status, 403)
    }
    assert.equal((await app.as('owner').get('/runners/current')).status, 403)
    assert.equal((await app.as('nobody').get('/runners/current')).status, 401)
    assert.equal((await app.as('admin').patch('/runners/none/scheduling', { unschedulable: true })).status, 404)
    assert.equal((await app.as('admin').delete('/runners/none')).status, 404)
    assert.equal((await app.as('admin').patch('/runners/local/scheduling', {})).status, 400)
    assert.equal((await app.as('admin').delete('/runners/local?force=maybe')).status, 400)
  })

  test('GET /runners/{runnerId}, GET /runners/by-sandbox/{sandboxId} return the state of a runner and the resources that its sandboxes have', async () => {
    await using _runner = await connectRunner(app)
    const box = (await app.as('member').post('/sandbox', { cpu: 1, memory: 2, disk: 3 })).body
    const { status, body } = await app.as('admin').get(`/runners/by-sandbox/${box.id}`)
    assert.equal(status, 200)
    const { id, name, region, state, unschedulable, currentStartedSandboxes, lastChecked } = body
    assert.deepEqual([id, name, region, state, unschedulable], ['local', 'local', 'local', 'ready', false])
    assert.equal(currentStartedSandboxes, 1)
    assert.equal(lastChecked, app.clock.now().toISOString())
    const held = [body.currentAllocatedCpu, body.currentAllocatedMemoryGiB, body.currentAllocatedDiskGiB]
    assert.deepEqual(held, [box.cpu, box.memory, box.disk])
    assert.deepEqual((await app.as('admin').get('/runners/local')).body, body)
    assert.deepEqual((await app.as('admin').get('/runners?regionId=elsewhere')).body, [])
    assert.equal((await app.as('admin').get('/runners/none')).status, 404)
    assert.equal((await app.as('admin').get('/runners/by-sandbox/none')).status, 404)
  })

  test('PATCH /runners/{runnerId}/scheduling can forbid new sandboxes on a runner, and allow them again', async () => {
    await using runner = await connectRunner(app)
    const box = (await app.as('member').post('/sandbox', {})).body
    assert.equal((await app.as('admin').patch('/runners/local/scheduling', { unschedulable: true })).status, 200)
    const refused = await app.as('member').post('/sandbox', {})
    assert.equal(refused.status, 503)
    assert.match(refused.body.message, /Runner "local" has it and is drained\. \(capacity\)$/)
    // A drained runner gets no new sandboxes, but its present sandboxes can be used. It stays drained after a new connection
    // and after heartbeats.
    assert.equal((await app.as('member').post(`/sandbox/${box.id}/stop`)).status, 200)
    await untilState(app, box.id, 'stopped')
    await runner.cut()
    await runner.link()
    assert.equal(await stateOf('local'), 'disabled')
    assert.equal((await app.as('admin').patch('/runners/local/scheduling', { unschedulable: false })).status, 200)
    assert.equal(await stateOf('local'), 'ready')
    assert.equal((await app.as('member').post('/sandbox', {})).status, 200)
  })
})

suite('PATCH /runners/{runnerId}/scheduling while the runner is not connected', () => {
  test('a disconnected runner whose draining ends becomes ready only when it connects', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const states = async () =>
      (await app.as('admin').get('/runners')).body.map(({ id, state }: { id: string; state: string }) => [id, state])
    const drain = async (unschedulable: boolean) => {
      for (const id of ['local', 'new'])
        assert.equal((await app.as('admin').patch(`/runners/${id}/scheduling`, { unschedulable })).status, 200)
    }
    await app.as('admin').post('/runners', { name: 'new' })
    await drain(true)
    app.clock.advance({ minutes: 1 })
    await app.sweep()
    const both = (local: string, other: string) => [
      ['local', local],
      ['new', other],
    ]
    assert.deepEqual(await states(), both('disabled', 'disabled'))
    await drain(false)
    assert.deepEqual(await states(), both('unresponsive', 'initializing'))
    // Ending the draining a second time changes nothing.
    await drain(false)
    assert.deepEqual(await states(), both('unresponsive', 'initializing'))
    await runner.cut()
    await runner.link()
    assert.deepEqual(await states(), both('ready', 'initializing'))
  })
})

suite('DELETE /runners/{runnerId}', () => {
  test('DELETE /runners/{runnerId} answers 409 for a runner with sandboxes; with force, its unarchived sandboxes are lost', async () => {
    await using app = await startControl(waiting)
    const added = await app.as('admin').post('/runners', { name: 'second' })
    const token = added.body.apiKey as string
    await using runner = await connectRunner(app, { token })
    const create = async (name: string) => {
      const { status, body } = await app.as('owner').post('/sandbox', { name })
      assert.equal(status, 200)
      return body.id as string
    }
    const [running, archived, restoring, deleted] = [
      await create('running'),
      await create('archived'),
      await create('restoring'),
      await create('deleted'),
    ]
    for (const id of [archived, restoring]) {
      await app.as('owner').post(`/sandbox/${id}/archive`)
      await untilState(app, id, 'archived')
    }
    runner.behave(() => ({ type: 'silent' }))
    await app.as('owner').post(`/sandbox/${restoring}/start`)
    await app.as('owner').delete(`/sandbox/${deleted}`)
    const kept = await app.as('admin').delete('/runners/second')
    assert.deepEqual(
      [kept.status, kept.body.message],
      [409, 'There are 3 sandboxes on this runner; drain it with move, or delete them first.'],
    )
    assert.equal((await app.as('admin').delete('/runners/second?force=true')).status, 204)

    const look = async (id: string) => (await app.as('owner').get(`/sandbox/${id}`)).body
    assert.deepEqual(
      [(await look(running)).state, (await look(running)).recoverable, (await look(running)).errorReason],
      ['error', false, 'Its runner was taken out of service.'],
    )
    assert.equal((await look(archived)).state, 'archived')
    assert.deepEqual([(await look(restoring)).state, (await look(restoring)).desiredState], ['archived', 'archived'])
    await untilState(app, deleted, 'destroyed')
    assert.equal((await app.with(token).get('/runners/current')).status, 401)
    const left = (await app.as('admin').get('/runners')).body.map(({ id }: { id: string }) => id)
    assert.deepEqual(left, ['local'])
    assert.equal((await app.as('owner').post(`/sandbox/${restoring}/start`)).status, 503)
    for (const id of [running, archived]) assert.equal((await app.as('owner').delete(`/sandbox/${id}`)).status, 200)
    await untilState(app, running, 'destroyed')
    // No runner is connected now, so the archive stays in the store. The runner "local" deletes the archive when it connects.
    app.clock.advance({ minutes: 2 })
    await app.sweep()
    assert.equal((await app.as('owner').get(`/sandbox/${archived}`)).status, 404)
    await using local = await connectRunner(app)
    const { archive } = await local.untilAsked(
      ({ sandboxId, target }) => sandboxId === archived && target === 'destroyed',
    )
    assert.ok(archive?.id)
    const isGone = () => app.database.sql`select 1 from sandboxes where id = ${archived} and gone_at is not null`
    while ((await isGone()).length === 0) await new Promise(setImmediate)
  })

  test('DELETE /runners/{runnerId} answers 409 for the server’s own runner, even with force', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    for (const query of ['', '?force=true']) {
      const { status, body } = await app.as('admin').delete(`/runners/local${query}`)
      assert.equal(status, 409)
      assert.match(body.message, /^Runner "local" is the server's own and cannot be removed. Drain the runner/)
    }
    assert.equal((await app.as('runner').get('/runners/current')).status, 200)
    assert.equal((await app.as('owner').post('/sandbox', {})).status, 200)
    assert.equal(runner.asked.length, 1)
  })

  test('after a forced removal of a runner, deleting one of its sandboxes deletes the sandbox’s archive too', async () => {
    await using app = await startControl(waiting)
    await using local = await connectRunner(app)
    const { body } = await app.as('admin').post('/runners', { name: 'second' })
    await using _second = await connectRunner(app, { token: body.apiKey })
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: true })
    const { id } = (await app.as('owner').post('/sandbox', {})).body
    await app.as('owner').post(`/sandbox/${id}/archive`)
    await untilState(app, id, 'archived')
    await app.as('owner').post(`/sandbox/${id}/start`)
    await untilState(app, id, 'started')
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: false })
    assert.equal((await app.as('admin').delete('/runners/second?force=true')).status, 204)
    assert.equal((await app.as('owner').get(`/sandbox/${id}`)).body.state, 'error')
    await app.as('owner').delete(`/sandbox/${id}`)
    const { archive } = await local.untilAsked(({ sandboxId, target }) => sandboxId === id && target === 'destroyed')
    assert.ok(archive?.id)
    await untilState(app, id, 'destroyed')
  })
})
