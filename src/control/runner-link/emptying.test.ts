import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { connectRunner, eventsOf, type SimulatedRunner, untilState } from '#test/control/simulated-runner.ts'

const options = { sandboxes: { createWaitSeconds: 20, leaseSeconds: 1_000_000 } }

const drain = (app: TestControl, id: string, body: object = { unschedulable: true, move: true }) =>
  app.as('admin').patch(`/runners/${id}/scheduling`, body)

const look = async (app: TestControl, id: string) => (await app.as('member').get(`/sandbox/${id}`)).body

const make = async (app: TestControl, body: object = {}): Promise<string> => {
  const made = await app.as('member').post('/sandbox', body)
  assert.equal(made.status, 200, made.text)
  await untilState(app, made.body.id, 'started')
  return made.body.id
}

const stop = async (app: TestControl, id: string) => {
  assert.equal((await app.as('member').post(`/sandbox/${id}/stop`)).status, 200)
  await untilState(app, id, 'stopped')
}

const progressOf = async (app: TestControl, id: string) => (await app.as('admin').get(`/runners/${id}/emptying`)).body

/** Runs all periodic sweeps of control, one of which empties runners, again and again until `is` returns true. */
const sweepUntil = async (app: TestControl, is: () => Promise<boolean>) => {
  const deadline = performance.now() + 20_000
  while (!(await is())) {
    assert.ok(performance.now() < deadline, 'this never came')
    await app.sweep()
  }
}

/**
 * Starts control with the runner "local", on which `prepare` creates sandboxes. Then connects a second runner, "other".
 */
const startWith = async (prepare: (app: TestControl) => Promise<unknown>, given: object = {}) => {
  const app = await startControl({ ...options, ...given })
  const local = await connectRunner(app)
  await prepare(app)
  const { body } = await app.as('admin').post('/runners', { name: 'other' })
  const other = await connectRunner(app, { token: body.apiKey })
  return {
    app,
    local,
    other,
    [Symbol.asyncDispose]: async () => {
      for (const each of [other, local, app]) await each[Symbol.asyncDispose]()
    },
  }
}

const targetsOf = (runner: SimulatedRunner, id: string) =>
  runner.asked.filter(({ sandboxId }) => sandboxId === id).map(({ target }) => target)

suite('PATCH /runners/{runnerId}/scheduling with `move: true`', () => {
  test('emptying a host archives stopped sandboxes, and moves running sandboxes, which keep preview tokens', async () => {
    let running = ''
    let resting = ''
    await using server = await startWith(async (app) => {
      running = await make(app)
      resting = await make(app)
      await stop(app, resting)
    })
    const { app, local, other } = server
    const tokenOf = async () =>
      (await app.database.sql`select preview_token from sandboxes where id = ${running}`)[0]?.preview_token
    const token = await tokenOf()
    const { running: count, left } = await progressOf(app, 'local')
    assert.deepEqual([count, left], [1, 2])
    const { status, body } = await drain(app, 'local')
    assert.deepEqual([status, body.unschedulable, body.isEmptied], [200, true, true])
    await sweepUntil(app, async () => (await look(app, running)).runnerId === 'other')
    await untilState(app, running, 'started')
    await untilState(app, resting, 'archived')
    assert.equal(await tokenOf(), token)
    assert.deepEqual(await progressOf(app, 'local'), { isEmptied: true, running: 0, left: 0, moving: 0, staying: [] })
    assert.equal(local.has.get(running), 'archived')
    assert.deepEqual(targetsOf(other, running), ['started'])
    assert.deepEqual(targetsOf(other, resting), [])
    const reasons = (await eventsOf(app, running)).filter(({ by_id }) => by_id === 'emptied-runner')
    assert.deepEqual(
      reasons.map(({ to_state, reason }) => [to_state, reason]),
      [
        ['archiving', 'Its host is emptied.'],
        ['restoring', 'Its host is emptied.'],
      ],
    )
  })

  test('an ephemeral sandbox survives the stop that moves it off an emptied host; a later stop deletes it', async () => {
    let id = ''
    await using server = await startWith(async (app) => {
      id = await make(app, { autoDeleteInterval: 0 })
    })
    const { app } = server
    await drain(app, 'local')
    await sweepUntil(app, async () => (await look(app, id)).runnerId === 'other')
    await untilState(app, id, 'started')
    await app.as('member').post(`/sandbox/${id}/stop`)
    await untilState(app, id, 'destroyed')
  })

  test('at most four sandboxes of a host that is being emptied are archived at the same time', async () => {
    const ids: string[] = []
    await using server = await startWith(async (app) => {
      for (let count = 0; count < 6; count++) ids.push(await make(app))
    })
    const { app, local } = server
    local.behave(() => ({ type: 'silent' }))
    await drain(app, 'local')
    await app.sweep()
    await app.sweep()
    const { moving, left } = await progressOf(app, 'local')
    assert.deepEqual([moving, left], [4, 6])
  })

  test('a sandbox with a volume on its host’s disk is not moved; GET /runners/{runnerId}/emptying says why', async () => {
    let id = ''
    await using server = await startWith(async (app) => {
      const volume = (await app.as('owner').post('/volumes', { name: 'bound' })).body
      id = await make(app, { volumes: [{ volumeId: volume.id, mountPath: '/bound' }] })
    })
    const { app, local } = server
    await drain(app, 'local')
    await app.sweep()
    assert.deepEqual((await progressOf(app, 'local')).staying, [
      { sandboxId: id, reason: 'A volume that it mounts is on the disk of this host.' },
    ])
    assert.deepEqual(new Set(targetsOf(local, id)), new Set(['started']))
  })

  test('a sandbox that cannot be archived starts again on the emptied host, and is listed as staying there', async () => {
    let id = ''
    await using server = await startWith(async (app) => {
      id = await make(app, { autoDeleteInterval: 0 })
    })
    const { app, local } = server
    local.behave(({ target }) =>
      target === 'archived' ? { type: 'refuse', state: 'stopped', reason: 'The store is full.' } : { type: 'do' },
    )
    await drain(app, 'local')
    await sweepUntil(app, async () => targetsOf(local, id).includes('archived'))
    await sweepUntil(app, async () => (await look(app, id)).state === 'started')
    await app.sweep()
    const archives = () => targetsOf(local, id).filter((target) => target === 'archived').length
    assert.equal(archives(), 1)
    assert.deepEqual(
      (await progressOf(app, 'local')).staying.map(({ sandboxId }: { sandboxId: string }) => sandboxId),
      [id],
    )
    // The operator asks again to empty the host. Control then tries again to archive the sandbox, and now succeeds.
    local.behave(() => ({ type: 'do' }))
    await drain(app, 'local')
    await sweepUntil(app, async () => (await look(app, id)).runnerId === 'other')
    await untilState(app, id, 'started')
  })

  test('an ephemeral sandbox that could not be moved off its emptied host is deleted when it ends by itself', async () => {
    let id = ''
    await using server = await startWith(async (app) => {
      id = await make(app, { autoDeleteInterval: 0 })
    })
    const { app, local } = server
    local.behave(({ target }) =>
      target === 'archived' ? { type: 'refuse', state: 'stopped', reason: 'The store is full.' } : { type: 'do' },
    )
    await drain(app, 'local')
    await sweepUntil(app, async () => targetsOf(local, id).includes('archived'))
    await sweepUntil(app, async () => (await look(app, id)).state === 'started')
    const { generation } = await local.untilAsked(({ sandboxId, target }) => sandboxId === id && target === 'started')
    local.report({ sandboxId: id, generation, state: 'stopped', cause: { exitCode: 0 } })
    await untilState(app, id, 'destroyed')
  })

  test('if a host refuses to archive a sandbox and to start it again, the start is retried after a minute', async () => {
    let id = ''
    await using server = await startWith(async (app) => {
      id = await make(app, { autoDeleteInterval: 0 })
    })
    const { app, local } = server
    local.behave(() => ({ type: 'refuse', state: 'stopped', reason: 'The disk is busy.' }))
    await drain(app, 'local')
    await sweepUntil(app, async () => /archived.*started/.test(targetsOf(local, id).join()))
    await untilState(app, id, 'stopped')
    local.behave(() => ({ type: 'do' }))
    await app.sweep()
    assert.equal((await look(app, id)).state, 'stopped')
    app.clock.advance({ seconds: 61 })
    await sweepUntil(app, async () => (await look(app, id)).state === 'started')
    assert.equal((await look(app, id)).runnerId, 'local')
  })

  test('a sandbox on a host that is being emptied runs on while no other host has room for it', async () => {
    let id = ''
    await using server = await startWith(async (app) => {
      id = await make(app)
    })
    const { app, local } = server
    await drain(app, 'local')
    await app.database.sql`update runners set memory_gib = 0.1 where id = 'other'`
    await app.sweep()
    await app.sweep()
    assert.ok(targetsOf(local, id).every((target) => target === 'started'))
    await app.database.sql`update runners set memory_gib = 16 where id = 'other'`
    await sweepUntil(app, async () => (await look(app, id)).runnerId === 'other')
  })

  test('if a host refuses to restore a sandbox that is moved to it, control tries again after a minute', async () => {
    let id = ''
    await using server = await startWith(async (app) => {
      id = await make(app)
    })
    const { app, other } = server
    other.behave(() => ({ type: 'refuse', state: 'archived', reason: 'The store does not answer.' }))
    await drain(app, 'local')
    const starts = () => targetsOf(other, id).filter((target) => target === 'started').length
    await sweepUntil(app, async () => starts() === 1)
    await untilState(app, id, 'archived')
    other.behave(() => ({ type: 'do' }))
    await app.sweep()
    assert.equal(starts(), 1)
    app.clock.advance({ seconds: 61 })
    await sweepUntil(app, async () => (await look(app, id)).state === 'started')
  })

  test('a caller’s start or delete of a sandbox has priority over moving it to another host', async () => {
    const ids: string[] = []
    await using server = await startWith(async (app) => {
      for (let count = 0; count < 2; count++) ids.push(await make(app))
    })
    const { app, local, other } = server
    local.behave(({ target }) => (target === 'archived' ? { type: 'silent' } : { type: 'do' }))
    await drain(app, 'local')
    await app.sweep()
    const [deleted, started] = ids as [string, string]
    assert.equal((await app.as('owner').delete(`/sandbox/${deleted}`)).status, 200)
    assert.equal((await app.as('member').post(`/sandbox/${started}/start`)).status, 200)
    await untilState(app, deleted, 'destroyed')
    await untilState(app, started, 'started')
    assert.equal((await look(app, started)).runnerId, 'local')
    assert.deepEqual(targetsOf(other, deleted), [])
    // Control is still emptying the host "local", so it moves the started sandbox to the host "other".
    local.behave(() => ({ type: 'do' }))
    await sweepUntil(app, async () => (await look(app, started)).runnerId === 'other')
  })

  test('a sandbox that its caller archives while it is being moved to another host stays archived', async () => {
    let id = ''
    await using server = await startWith(async (app) => {
      id = await make(app)
    })
    const { app, local, other } = server
    local.behave(() => ({ type: 'silent' }))
    await drain(app, 'local')
    await app.sweep()
    const assignment = await local.untilAsked(({ target }) => target === 'archived')
    const { status, body } = await app.as('member').post(`/sandbox/${id}/archive`)
    assert.deepEqual([status, body.state], [200, 'archiving'])
    local.perform(assignment)
    await untilState(app, id, 'archived')
    await app.sweep()
    await app.sweep()
    assert.equal((await look(app, id)).state, 'archived')
    assert.deepEqual(targetsOf(other, id), [])
  })

  test('if an operator undoes a host’s drain, no more sandboxes are moved; sandboxes being moved run again', async () => {
    const ids: string[] = []
    await using server = await startWith(async (app) => {
      for (let count = 0; count < 6; count++) ids.push(await make(app))
    })
    const { app, local } = server
    local.behave(() => ({ type: 'silent' }))
    await drain(app, 'local')
    await app.sweep()
    assert.equal((await drain(app, 'local', { unschedulable: false })).body.isEmptied, false)
    local.behave(() => ({ type: 'do' }))
    for (const assignment of local.asked.filter(({ target }) => target === 'archived')) local.perform(assignment)
    const states = async () => await Promise.all(ids.map(async (id) => (await look(app, id)).state))
    await sweepUntil(app, async () => (await states()).every((state) => state === 'started'))
    const archived = new Set(
      local.asked.filter(({ target }) => target === 'archived').map(({ sandboxId }) => sandboxId),
    )
    assert.equal(archived.size, 4)
  })

  test('PATCH /runners/{runnerId}/scheduling with `move`: 409 if no other host is ready, 404 for an unknown host, 400 without `unschedulable`', async () => {
    await using app = await startControl(options)
    await using _local = await connectRunner(app)
    const refused = await drain(app, 'local')
    assert.equal(refused.status, 409)
    assert.match(refused.body.message, /No other runner of the region of "local" is ready/)
    assert.equal((await drain(app, 'local', { unschedulable: false, move: true })).status, 400)
    assert.equal((await drain(app, 'none')).status, 404)
  })
})

suite('GET /runners/{runnerId}/emptying', () => {
  test('GET /runners/{runnerId}/emptying answers 401 without a key, 403 to owners and 404 for an unknown runner', async () => {
    await using app = await startControl(options)
    assert.equal((await app.as('nobody').get('/runners/local/emptying')).status, 401)
    assert.equal((await app.as('owner').get('/runners/local/emptying')).status, 403)
    assert.equal((await app.as('admin').get('/runners/none/emptying')).status, 404)
  })
})
