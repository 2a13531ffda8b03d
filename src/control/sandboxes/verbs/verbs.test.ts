import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { create } from '#test/control/box.ts'
import { startControl } from '#test/control/harness.ts'
import { connectRunner, eventsOf, untilState } from '#test/control/simulated-runner.ts'

const waiting = { sandboxes: { createWaitSeconds: 20 } }

suite('GET /sandbox/:sandboxIdOrName', () => {
  test('GET /sandbox/:sandboxIdOrName finds a sandbox by id and by name; a new name may not look like an id', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app)
    assert.equal((await app.as('owner').post('/sandbox', { name: id })).status, 400)
    const viewer = app.as('viewer')
    assert.equal((await viewer.get('/sandbox/box?verbose=true')).body.id, id)
    assert.equal((await viewer.get(`/sandbox/${id}`)).body.name, 'box')
  })

  test('GET /sandbox/:sandboxIdOrName answers 404 to strangers and for destroyed sandboxes, 401 without a key', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app)
    for (const path of [`/sandbox/${id}`, '/sandbox/box']) {
      assert.equal((await app.as('stranger').get(path)).status, 404)
      assert.equal((await app.as('nobody').get(path)).status, 401)
    }
    assert.equal((await app.as('owner').get('/sandbox/none')).status, 404)
    await app.as('owner').delete('/sandbox/box')
    await untilState(app, id, 'destroyed')
    assert.equal((await app.as('owner').get(`/sandbox/${id}`)).status, 404)
  })

  test('GET /sandbox/{id} shows the last state while the runner is silent, and `errorReason` says since when', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    app.clock.advance({ minutes: 1 })
    await app.sweep()
    const silent = (await app.as('member').get(`/sandbox/${id}`)).body
    assert.equal(silent.state, 'started')
    assert.match(silent.errorReason, /has not answered since/)
    await runner.cut()
    await runner.link()
    const healed = (await app.as('member').get(`/sandbox/${id}`)).body
    assert.deepEqual([healed.state, healed.errorReason], ['started', undefined])
  })

  test('GET /sandbox/:sandboxIdOrName and lists show that the runner is silent, even if the runner was drained', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    const reasons = async () => {
      const [one, list] = await Promise.all([app.as('member').get(`/sandbox/${id}`), app.as('member').get('/sandbox')])
      return [one.body.errorReason, list.body.items[0].errorReason]
    }
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: true })
    assert.deepEqual(await reasons(), [undefined, undefined])
    app.clock.advance({ minutes: 1 })
    await app.sweep()
    for (const reason of await reasons()) assert.match(reason, /has not answered since/)
    // The operator ends the drain of the runner. The runner still gets no new sandboxes, because it is silent.
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: false })
    assert.equal((await app.as('member').post('/sandbox', {})).status, 503)
    await runner.cut()
    await runner.link()
    assert.deepEqual(await reasons(), [undefined, undefined])
    assert.equal((await app.as('member').post('/sandbox', {})).status, 200)
  })
})

suite('assignments for the runner', () => {
  test('the assignment of a running sandbox has `isRunning`, so no runner starts the sandbox a second time', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    const last = () => runner.asked.at(-1)?.isRunning ?? false
    assert.equal(last(), false)
    await app.as('member').post(`/sandbox/${id}/resize`, { cpu: 2 })
    assert.equal(last(), true)
    await app.as('member').post(`/sandbox/${id}/network-settings`, { networkBlockAll: true })
    await runner.untilAsked(({ network }) => network.blockAll)
    assert.equal(last(), true)
    await app.as('member').post(`/sandbox/${id}/stop`)
    await untilState(app, id, 'stopped')
    await app.as('member').post(`/sandbox/${id}/start`)
    assert.equal(last(), false)
  })
})

suite('POST /sandbox/:sandboxIdOrName/stop', () => {
  test('POST /sandbox/:sandboxIdOrName/stop answers `stopping`; the runner gets one assignment to stop the sandbox', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    runner.behave(() => ({ type: 'silent' }))
    const reply = await app.as('member').post('/sandbox/box/stop')
    assert.deepEqual([reply.status, reply.body.state, reply.body.desiredState], [200, 'stopping', 'stopped'])
    const asked = await runner.untilAsked(({ target }) => target === 'stopped')
    assert.deepEqual([asked.signal, asked.generation], ['SIGTERM', 2])
    runner.perform(asked)
    await untilState(app, id, 'stopped')
    assert.equal(runner.asked.length, 2)
    const again = await app.as('member').post('/sandbox/box/stop')
    assert.deepEqual([again.status, again.body.state], [200, 'stopped'])
    assert.equal(runner.asked.length, 2)
  })

  test('POST /sandbox/:sandboxIdOrName/stop with force sends SIGKILL to the sandbox', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    await create(app)
    await app.as('member').post('/sandbox/box/stop?force=true')
    const asked = await runner.untilAsked(({ target }) => target === 'stopped')
    assert.equal(asked.signal, 'SIGKILL')
  })

  test('POST /sandbox/:sandboxIdOrName/stop deletes an ephemeral sandbox once it has stopped', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app, { autoDeleteInterval: 0 })
    await app.as('member').post('/sandbox/box/stop')
    await untilState(app, id, 'destroyed')
    assert.equal((await app.as('member').get(`/sandbox/${id}`)).status, 404)
    assert.equal(runner.has.has(id), false)
  })

  test('POST /sandbox/:sandboxIdOrName/stop answers 404 to strangers, 403 to a viewer, 400 in `error`, 409 for a starting sandbox', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    await create(app)
    assert.equal((await app.as('stranger').post('/sandbox/box/stop')).status, 404)
    assert.equal((await app.as('viewer').post('/sandbox/box/stop')).status, 403)
    assert.equal(runner.asked.length, 1)
    runner.behave(() => ({ type: 'fail', reason: 'no' }))
    await create(app, { name: 'broken' })
    assert.equal((await app.as('member').post('/sandbox/broken/stop')).status, 400)
    assert.equal((await app.as('member').post('/sandbox/box/stop?force=perhaps')).status, 400)
    runner.behave(() => ({ type: 'silent' }))
    await app.as('member').post('/sandbox/broken/recover')
    assert.equal((await app.as('member').post('/sandbox/broken/stop')).status, 409)
  })
})

suite('POST /sandbox/:sandboxIdOrName/start', () => {
  test('POST /sandbox/:sandboxIdOrName/start answers `starting`; for a started sandbox, the call changes nothing', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    await app.as('member').post('/sandbox/box/stop')
    await untilState(app, id, 'stopped')
    const reply = await app.as('member').post('/sandbox/box/start')
    assert.deepEqual([reply.status, reply.body.state], [200, 'starting'])
    await untilState(app, id, 'started')
    const asked = runner.asked.length
    const again = await app.as('member').post('/sandbox/box/start')
    assert.deepEqual([again.status, again.body.state], [200, 'started'])
    assert.equal(runner.asked.length, asked)
  })

  test('POST /sandbox/:sandboxIdOrName/start answers 503 if other sandboxes use all CPUs of the runner', async () => {
    await using app = await startControl({
      sandboxes: { createWaitSeconds: 20, overcommit: { cpu: 1, memory: 8, disk: 8 } },
    })
    await using _runner = await connectRunner(app, { capabilities: { cpu: 2 } })
    const id = await create(app, { cpu: 2 })
    await app.as('member').post('/sandbox/box/stop')
    await untilState(app, id, 'stopped')
    const other = await create(app, { name: 'other', cpu: 2 })
    assert.equal((await app.as('member').post('/sandbox/box/start')).status, 503)
    await app.as('member').post('/sandbox/other/stop')
    await untilState(app, other, 'stopped')
    assert.equal((await app.as('member').post('/sandbox/box/start')).status, 200)
  })

  test('POST /sandbox/:sandboxIdOrName/start answers 400 in the state `error`, 403 if the organization is suspended, 404 to strangers', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    runner.behave(() => ({ type: 'fail', reason: 'no' }))
    await create(app)
    const reply = await app.as('member').post('/sandbox/box/start')
    assert.equal(reply.status, 400)
    assert.match(reply.body.message, /recover it instead/)
    assert.equal((await app.as('stranger').post('/sandbox/box/start')).status, 404)
    assert.equal((await app.as('viewer').post('/sandbox/box/start')).status, 403)
    await app.database.sql`update organizations set suspended = true`
    app.app.sandboxes.callers.forget()
    assert.equal((await app.as('member').post('/sandbox/box/start')).status, 403)
  })
})

suite('POST /sandbox/:sandboxIdOrName/recover', () => {
  test('POST /sandbox/:sandboxIdOrName/recover brings a sandbox from `error` to `started`, or with skipStart to `stopped`', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    for (const [query, through, to] of [
      ['', 'starting', 'started'],
      ['?skipStart=true', 'stopping', 'stopped'],
    ] as const) {
      runner.behave(() => ({ type: 'fail', reason: 'no' }))
      const id = await create(app, { name: `box-${to}` })
      runner.behave(() => ({ type: 'do' }))
      const reply = await app.as('member').post(`/sandbox/${id}/recover${query}`)
      assert.deepEqual([reply.status, reply.body.state, reply.body.errorReason], [200, through, undefined])
      await untilState(app, id, to)
    }
  })

  test('POST /sandbox/:sandboxIdOrName/recover answers 400 if the sandbox is not in `error` or is not recoverable', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    await create(app)
    assert.equal((await app.as('member').post('/sandbox/box/recover')).status, 400)
    assert.equal((await app.as('stranger').post('/sandbox/box/recover')).status, 404)
    runner.behave(() => ({ type: 'fail', reason: 'the disk is lost', recoverable: false }))
    await create(app, { name: 'lost' })
    const reply = await app.as('member').post('/sandbox/lost/recover')
    assert.equal(reply.status, 400)
    assert.match(reply.body.message, /the disk is lost/)
  })
})

suite('DELETE /sandbox/:sandboxIdOrName', () => {
  test('when a sandbox is deleted, texts that its creator wrote are removed immediately, and its row later', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const big = 'x'.repeat(50_000)
    const id = await create(app, { env: { BIG: big }, labels: { big } })
    const evicted = await create(app, { name: 'evicted', env: { BIG: big } })
    const { sql } = app.database
    await sql`update sandboxes set spot_evicted_at = ${app.clock.now()} where id = ${evicted}`
    const reply = await app.as('owner').delete(`/sandbox/${id}`)
    assert.equal(reply.body.labels.big, big)
    await app.as('owner').delete(`/sandbox/${evicted}`)
    await untilState(app, id, 'destroyed')
    await untilState(app, evicted, 'destroyed')
    const rows = await sql<{ env: object; labels: object }[]>`
      select env, labels from sandboxes where id in (${id}, ${evicted}) order by id = ${evicted}`
    assert.deepEqual(
      [...rows],
      [
        { env: {}, labels: {} },
        { env: { BIG: big }, labels: {} },
      ],
    )
  })

  test('DELETE /sandbox/:sandboxIdOrName renames the sandbox, so that its name is free; a second delete answers 404', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    runner.behave(({ target }) => ({ type: target === 'destroyed' ? 'silent' : 'do' }))
    const reply = await app.as('owner').delete('/sandbox/box')
    assert.deepEqual([reply.status, reply.body.state, reply.body.desiredState], [200, 'destroying', 'destroyed'])
    assert.match(reply.body.name, /^DESTROYED_box_\d+$/)
    const other = await create(app)
    assert.notEqual(other, id)
    assert.equal((await app.as('owner').delete(`/sandbox/${id}`)).status, 404)
    runner.perform(await runner.untilAsked(({ sandboxId, target }) => sandboxId === id && target === 'destroyed'))
    await untilState(app, id, 'destroyed')
    assert.equal((await app.as('owner').get('/sandbox/box')).body.id, other)
  })

  test('a sandbox that is deleted while it is created stays deleted, even if the create succeeds later', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 0 } })
    await using runner = await connectRunner(app)
    runner.behave(() => ({ type: 'silent' }))
    const id = await create(app)
    const creation = await runner.untilAsked(({ target }) => target === 'started')
    assert.equal((await app.as('owner').delete('/sandbox/box')).status, 200)
    const deletion = await runner.untilAsked(({ target }) => target === 'destroyed')
    runner.perform(creation)
    runner.perform(deletion)
    await untilState(app, id, 'destroyed')
    assert.deepEqual(
      (await eventsOf(app, id)).map(({ to_state }) => to_state),
      ['creating', 'destroying', 'destroyed'],
    )
  })

  test('after DELETE /sandbox/:sandboxIdOrName, control asks the runner again until the runner succeeds', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    runner.behave(() => ({ type: 'fail', reason: 'device busy' }))
    await app.as('owner').delete('/sandbox/box')
    await untilState(app, id, 'error')
    const listed = await app.as('owner').get('/sandbox')
    assert.deepEqual(listed.body.items, [])
    const all = await app.as('owner').get('/sandbox?includeErroredDeleted=true')
    assert.deepEqual(
      all.body.items.map((each: { errorReason: string }) => each.errorReason),
      ['device busy'],
    )
    runner.behave(() => ({ type: 'do' }))
    app.clock.advance({ seconds: 10 })
    await app.sweep()
    await untilState(app, id, 'destroyed')
  })

  test('DELETE /sandbox/:sandboxIdOrName answers 403 without the permission and 404 to strangers', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    await create(app)
    assert.equal((await app.as('member').delete('/sandbox/box')).status, 403)
    assert.equal((await app.as('stranger').delete('/sandbox/box')).status, 404)
    assert.equal((await app.as('nobody').delete('/sandbox/box')).status, 401)
    assert.equal(runner.asked.length, 1)
  })
})

suite('opposite verbs at the same time', () => {
  test('twenty simultaneous starts and stops of a sandbox run one after another, and none stays under way', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, n) => app.as('member').post(`/sandbox/box/${n % 2 === 0 ? 'stop' : 'start'}`)),
    )
    for (const { status } of replies) assert.ok([200, 409].includes(status), String(status))
    await untilState(app, id, (await app.as('member').get('/sandbox/box')).body.desiredState)
    const events = await eventsOf(app, id)
    events.slice(1).forEach((event, n) => {
      assert.equal(event.from_state, events[n]?.to_state)
    })
    const generations = runner.asked.map(({ generation }) => generation)
    assert.deepEqual(
      generations,
      [...generations].sort((a, b) => a - b),
    )
  })

  test('a delete of a sandbox succeeds although twenty starts and stops of the sandbox run at the same time', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    const deletion = app.as('owner').delete('/sandbox/box')
    const others = Array.from({ length: 20 }, (_, n) =>
      app.as('member').post(`/sandbox/${id}/${n % 2 === 0 ? 'stop' : 'start'}`),
    )
    assert.equal((await deletion).status, 200)
    for (const { status } of await Promise.all(others)) assert.ok([200, 404, 409].includes(status), String(status))
    await untilState(app, id, 'destroyed')
    assert.equal(runner.has.has(id), false)
  })
})
