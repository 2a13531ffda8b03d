// Tests the verbs pause, resize and archive.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { create, get, post } from '#test/control/box.ts'
import { startControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { archiveReport, connectRunner, eventsOf, untilState } from '#test/control/simulated-runner.ts'

const waiting = { sandboxes: { createWaitSeconds: 20 } }

suite('POST /sandbox/:sandboxIdOrName/pause', () => {
  test('POST /sandbox/:sandboxIdOrName/pause pauses a sandbox; a start resumes the sandbox with the same preview token', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    const tokenOf = async () => (await app.as('member').get(`/sandbox/${id}/ports/80/preview-url`)).body.token
    const token = await tokenOf()
    const reply = await post(app, 'pause')
    assert.deepEqual([reply.status, reply.body.state, reply.body.desiredState], [200, 'pausing', 'paused'])
    await untilState(app, id, 'paused')
    assert.equal((await get(app, id)).pauseKind, 'memory')
    assert.deepEqual((await post(app, 'pause')).body.state, 'paused')
    const resumed = await post(app, 'start')
    assert.deepEqual([resumed.status, resumed.body.state], [200, 'resuming'])
    await untilState(app, id, 'started')
    assert.equal((await get(app, id)).pauseKind, undefined)
    assert.equal(await tokenOf(), token)
    assert.deepEqual(
      runner.asked.map(({ target }) => target),
      ['started', 'paused', 'started'],
    )
  })

  test('POST /sandbox/:sandboxIdOrName/pause answers with state `paused` if the runner is quick', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20, momentMilliseconds: 20_000 } })
    await using _runner = await connectRunner(app)
    await create(app)
    assert.equal((await post(app, 'pause')).body.state, 'paused')
    assert.equal((await post(app, 'start')).body.state, 'started')
  })

  test('if a runner cannot pause a sandbox, the sandbox stays `started`, and its record says why', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    runner.behave(({ target }) =>
      target === 'paused' ? { type: 'refuse', state: 'started', reason: 'The freezer is stuck.' } : { type: 'do' },
    )
    await post(app, 'pause')
    await untilState(app, id, 'started')
    const { desiredState, errorReason } = await get(app, id)
    assert.deepEqual([desiredState, errorReason], ['started', 'The freezer is stuck.'])
    // The runner also gets an assignment which says that the sandbox must stay started.
    const last = await runner.untilAsked(({ target, generation }) => target === 'started' && generation > 2)
    assert.equal(last.generation, 3)
  })

  test('a paused sandbox can be stopped, and becomes `stopped` if its host restarts', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    await post(app, 'pause')
    await untilState(app, id, 'paused')
    assert.equal((await post(app, 'stop')).body.state, 'stopping')
    await untilState(app, id, 'stopped')
    await post(app, 'start')
    await untilState(app, id, 'started')
    await post(app, 'pause')
    await untilState(app, id, 'paused')
    const { generation } = await runner.untilAsked(({ target }) => target === 'paused')
    runner.report({ sandboxId: id, generation, state: 'stopped', cause: { detail: 'The host was restarted.' } })
    await untilState(app, id, 'stopped')
    assert.match((await get(app, id)).errorReason, /host was restarted/)
  })

  test('POST /sandbox/:sandboxIdOrName/pause answers 422 if the runner cannot pause, 400 for a stopped sandbox', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    await create(app)
    runner.say({
      type: 'hello',
      address: 'unix:/simulated/runner.sock',
      images: ['default'],
      version: '0.0.1',
      capabilities: { cpu: 4, memoryGiB: 16, diskGiB: 100, runtime: '', runtimeVersion: '', hardDiskLimit: true },
    })
    while ((await app.database.sql`select 1 from runners where pause is not null`).length > 0) {
      await new Promise(setImmediate)
    }
    assert.equal((await post(app, 'pause')).status, 422)
    assert.equal((await app.as('stranger').post('/sandbox/box/pause')).status, 404)
    assert.equal((await app.as('viewer').post('/sandbox/box/pause')).status, 403)
    await post(app, 'stop')
    await untilState(app, (await get(app, 'box')).id, 'stopped')
    assert.equal((await post(app, 'pause')).status, 400)
  })
})

suite('POST /sandbox/:sandboxIdOrName/resize', () => {
  test('POST /sandbox/:sandboxIdOrName/resize returns the new size of a running, stopped or paused sandbox', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    const sizeAfter = async (body: object) => {
      const reply = await post(app, 'resize', body)
      assert.equal(reply.status, 200, reply.text)
      const { state, cpu, memory, disk } = reply.body
      return [state, cpu, memory, disk]
    }
    assert.deepEqual(await sizeAfter({ cpu: 2, memory: 4, disk: 5 }), ['started', 2, 4, 5])
    const { cpu, memoryGiB, diskGiB, target } = await runner.untilAsked(({ generation }) => generation === 2)
    assert.deepEqual([cpu, memoryGiB, diskGiB, target], [2, 4, 5, 'started'])
    await post(app, 'pause')
    await untilState(app, id, 'paused')
    assert.deepEqual(await sizeAfter({ cpu: 1 }), ['paused', 1, 4, 5])
    await post(app, 'stop')
    await untilState(app, id, 'stopped')
    assert.deepEqual(await sizeAfter({ memory: 1, disk: 5 }), ['stopped', 1, 1, 5])
    const reasons = (await eventsOf(app, id)).filter(({ to_state }) => to_state === 'resizing')
    assert.match(reasons[0]?.reason ?? '', /from 1 CPU, 1 GiB memory, 3 GiB disk to 2 CPU, 4 GiB memory, 5 GiB disk/)
  })

  test('POST /sandbox/:sandboxIdOrName/resize answers 409 with the runner’s reason if the runner refuses', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    assert.equal((await post(app, 'resize', { memory: 4 })).status, 200)
    const reason = '1 GiB of memory is less than the 2.5 GiB in use.'
    runner.behave(() => ({ type: 'refuse', state: 'started', reason }))
    const reply = await post(app, 'resize', { memory: 1, cpu: 2 })
    assert.deepEqual([reply.status, reply.body.message], [409, reason])
    const { state, desiredState, cpu, memory, errorReason } = await get(app, id)
    assert.deepEqual([state, desiredState, cpu, memory, errorReason], ['started', 'started', 1, 4, reason])
    const last = await runner.untilAsked(({ generation }) => generation === 4)
    assert.deepEqual([last.cpu, last.memoryGiB], [1, 4])
    // The refused resize must not affect the next resize.
    runner.behave(() => ({ type: 'do' }))
    assert.equal((await post(app, 'resize', { cpu: 3 })).body.errorReason, undefined)
  })

  test('if a runner refuses a resize only after the time limit, the sandbox gets its old state and size back', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 0 } })
    await using runner = await connectRunner(app)
    const id = await create(app)
    await untilState(app, id, 'started')
    runner.behave(() => ({ type: 'silent' }))
    await post(app, 'resize', { memory: 4 })
    const { generation } = await runner.untilAsked(({ memoryGiB }) => memoryGiB === 4)
    app.clock.advance({ minutes: 10 })
    await app.sweep()
    assert.deepEqual([(await get(app, id)).state, (await get(app, id)).memory], ['error', 4])
    runner.report({ sandboxId: id, generation, state: 'started', refused: 'It would not.' })
    await untilState(app, id, 'started')
    const [row] = await app.database.sql`select memory_gib, error_reason from sandboxes where id = ${id}`
    assert.deepEqual({ ...row }, { memory_gib: 1, error_reason: 'It would not.' })
  })

  test('a recover retries a stuck resize; if the runner refuses, the sandbox gets its old size and a reason', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 0 } })
    await using runner = await connectRunner(app)
    const id = await create(app)
    await untilState(app, id, 'started')
    runner.behave(() => ({ type: 'silent' }))
    await post(app, 'resize', { memory: 4 })
    app.clock.advance({ minutes: 10 })
    await app.sweep()
    assert.equal((await post(app, 'recover')).status, 200)
    const { generation } = await runner.untilAsked((asked) => asked.generation === 3)
    runner.report({ sandboxId: id, generation, state: 'started', refused: 'It would not.' })
    await untilState(app, id, 'started')
    const [row] = await app.database.sql`select memory_gib, error_reason from sandboxes where id = ${id}`
    assert.deepEqual({ ...row }, { memory_gib: 1, error_reason: 'It would not.' })
  })

  test('POST /sandbox/:sandboxIdOrName/resize answers 400 for an invalid size, 403 above limits, 503 without room', async () => {
    await using app = await startControl({
      sandboxes: { createWaitSeconds: 20, overcommit: { cpu: 1, memory: 1, disk: 1 } },
    })
    await using runner = await connectRunner(app, { capabilities: { cpu: 1 } })
    await create(app)
    await app.database.sql`update organizations set max_memory_per_sandbox = 8 where id = ${organizations.ours}`
    app.app.sandboxes.callers.forget()
    for (const [status, body, says] of [
      [400, {}, /must be given/],
      [400, { cpu: 1, memory: 1, disk: 3 }, /differ/],
      [400, { disk: 2 }, /3 GiB/],
      [400, { cpu: 0 }, /cpu/],
      [400, { cpu: 1.5 }, /cpu/],
      [400, { memory: -1 }, /memory/],
      [400, { memory: 1e300 }, /memory/],
      [403, { memory: 9 }, /memory 9 GiB is more than the 8 GiB/],
      [503, { cpu: 2 }, /no room/],
    ] as const) {
      const reply = await post(app, 'resize', body)
      assert.equal(reply.status, status, `${JSON.stringify(body)}: ${reply.text}`)
      assert.match(reply.body.message, says)
    }
    assert.equal(runner.asked.length, 1)
  })

  test('POST /sandbox/:sandboxIdOrName/resize answers 404 to strangers, 403 to a viewer, 409 for a stopping sandbox', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    await create(app)
    assert.equal((await app.as('stranger').post('/sandbox/box/resize', { cpu: 2 })).status, 404)
    assert.equal((await app.as('viewer').post('/sandbox/box/resize', { cpu: 2 })).status, 403)
    runner.behave(() => ({ type: 'silent' }))
    await post(app, 'stop')
    assert.equal((await post(app, 'resize', { cpu: 2 })).status, 409)
  })
})

suite('POST /sandbox/:sandboxIdOrName/archive', () => {
  test('POST /sandbox/:sandboxIdOrName/archive archives a started, stopped or paused sandbox; a start restores the sandbox', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    for (const before of ['started', 'stopped', 'paused'] as const) {
      if (before === 'stopped') await post(app, 'stop')
      if (before === 'paused') await post(app, 'pause')
      await untilState(app, id, before)
      const reply = await post(app, 'archive')
      assert.deepEqual([reply.status, reply.body.state, reply.body.desiredState], [200, 'archiving', 'archived'])
      await untilState(app, id, 'archived')
      assert.equal((await post(app, 'archive')).body.state, 'archived')
      const asked = runner.asked.at(-1)
      assert.equal(asked?.target, 'archived')
      const archived = archiveReport(asked?.archive?.id ?? '')
      const started = await post(app, 'start')
      assert.deepEqual([started.status, started.body.state], [200, 'restoring'])
      await untilState(app, id, 'started')
      const { archive, isNew } = runner.asked.at(-1)!
      assert.deepEqual([archive, isNew], [{ id: archived.id, sha256: archived.sha256 }, false])
      // The assignment for the stop contains no archive. Otherwise a runner that lost the disk would restore files from before the
      // last start.
      await post(app, 'stop')
      await untilState(app, id, 'stopped')
      assert.equal(runner.asked.at(-1)?.archive, undefined)
      await post(app, 'start')
      await untilState(app, id, 'started')
    }
  })

  test('an archived sandbox uses no CPU, memory or disk of its organization’s quota', async () => {
    await using app = await startControl({
      sandboxes: { createWaitSeconds: 20, overcommit: { cpu: 1, memory: 1, disk: 1 } },
    })
    await using _runner = await connectRunner(app, { capabilities: { cpu: 1 } })
    const id = await create(app)
    assert.equal((await app.as('member').post('/sandbox', { name: 'other' })).status, 503)
    await post(app, 'archive')
    await untilState(app, id, 'archived')
    assert.equal((await app.as('member').post('/sandbox', { name: 'other' })).status, 200)
    // A restore needs free resources on a runner, and no runner has enough.
    assert.equal((await post(app, 'start')).status, 503)
    assert.equal((await get(app, id)).state, 'archived')
  })

  test('if the archive store is unreachable, a sandbox stays stopped with the reason; a later try succeeds', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app, { autoArchiveInterval: 10 })
    await post(app, 'stop')
    await untilState(app, id, 'stopped')
    runner.behave(({ target }) =>
      target === 'archived' ? { type: 'refuse', state: 'stopped', reason: 'The store is away.' } : { type: 'do' },
    )
    await app.pass({ minutes: 10 })
    const attempts = () => runner.asked.filter(({ target }) => target === 'archived').length
    await app.sweep()
    await untilState(app, id, 'stopped')
    await runner.untilAsked(({ target, generation }) => target === 'stopped' && generation > 3)
    const [row] = await app.database.sql`select error_reason from sandboxes where id = ${id}`
    assert.equal(row?.['error_reason'], 'The store is away.')
    await app.sweep()
    assert.equal(attempts(), 1)
    runner.behave(() => ({ type: 'do' }))
    await app.pass({ minutes: 61 })
    await app.sweep()
    await untilState(app, id, 'archived')
    assert.equal(attempts(), 2)
    const archived = (await eventsOf(app, id)).findLast(({ to_state }) => to_state === 'archiving')
    assert.deepEqual([archived?.by_id, archived?.reason], ['auto-archive', 'Archived 10 minutes after it stopped.'])
  })

  test('if a restore fails, the sandbox stays archived, and its timers count from the failure', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app, { autoDeleteInterval: 60 })
    await post(app, 'archive')
    await untilState(app, id, 'archived')
    await app.pass({ minutes: 59 })
    runner.behave(() => ({ type: 'silent' }))
    await post(app, 'start')
    await app.pass({ minutes: 5 })
    const { generation } = await runner.untilAsked(
      ({ target, archive }) => target === 'started' && archive !== undefined,
    )
    runner.report({ sandboxId: id, generation, state: 'archived', refused: 'The store is away.' })
    await untilState(app, id, 'archived')
    await app.sweep()
    assert.equal((await get(app, id)).state, 'archived')
    runner.behave(() => ({ type: 'do' }))
    await app.pass({ minutes: 60 })
    await app.sweep()
    await untilState(app, id, 'destroyed')
  })

  test('timers archive at most four sandboxes of a runner at the same time; others stay stopped', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const ids: string[] = []
    for (let n = 0; n < 7; n++) {
      ids.push(await create(app, { name: `box${n}`, autoArchiveInterval: 60 }))
      await app.as('member').post(`/sandbox/box${n}/stop`)
      await untilState(app, ids[n]!, 'stopped')
    }
    const idle = await create(app, { name: 'idle', autoStopInterval: 61 })
    runner.behave(({ target }) => ({ type: target === 'archived' ? 'silent' : 'do' }))
    await app.pass({ minutes: 61 })
    const states = async () => (await Promise.all(ids.map((id) => get(app, id)))).map(({ state }) => state).sort()
    const half = [...Array(4).fill('archiving'), ...Array(3).fill('stopped')]
    await app.sweep()
    assert.deepEqual(await states(), half)
    await app.sweep()
    assert.deepEqual(await states(), half)
    // The sandbox `idle` is stopped by its timer, although some sandboxes still wait for their automatic archive.
    await untilState(app, idle, 'stopped')
    const stopped = (await app.as('member').get('/sandbox?states=stopped&name=box')).body.items[0]
    assert.equal((await app.as('member').post(`/sandbox/${stopped.id}/start`)).status, 200)
    runner.perform(runner.asked.find(({ target }) => target === 'archived')!)
    await untilState(app, runner.asked.find(({ target }) => target === 'archived')!.sandboxId, 'archived')
    await app.sweep()
    assert.equal((await states()).filter((state) => state === 'archiving').length, 4)
  })

  test('no timer archives a sandbox while its runner is silent', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app, { autoArchiveInterval: 60 })
    await post(app, 'stop')
    await untilState(app, id, 'stopped')
    await runner.cut()
    app.clock.advance({ hours: 3 })
    await app.sweep()
    assert.equal((await get(app, id)).state, 'stopped')
    await runner.link()
    await app.sweep()
    await untilState(app, id, 'archived')
  })

  test('recover restores a sandbox whose restore failed; with skipStart, the sandbox stays archived', async () => {
    await using app = await startControl({
      sandboxes: { createWaitSeconds: 20, overcommit: { cpu: 1, memory: 1, disk: 1 } },
    })
    // The runner has room for exactly one sandbox.
    await using runner = await connectRunner(app, { capabilities: { cpu: 1 } })
    const id = await create(app)
    await post(app, 'archive')
    await untilState(app, id, 'archived')
    const { archive } = runner.asked.at(-1)!
    const fail = async () => {
      runner.behave(() => ({ type: 'fail', reason: 'It could not be started.' }))
      await post(app, 'start')
      await untilState(app, id, 'error')
    }
    await fail()
    runner.behave(({ target }) =>
      target === 'stopped' ? { type: 'refuse', state: 'archived', reason: 'It is archived.' } : { type: 'do' },
    )
    assert.equal((await post(app, 'recover?skipStart=true')).body.state, 'stopping')
    await untilState(app, id, 'archived')
    await fail()
    runner.behave(() => ({ type: 'do' }))
    assert.deepEqual([(await post(app, 'recover')).status, (await get(app, id)).errorReason], [200, undefined])
    await untilState(app, id, 'started')
    const asked = runner.asked.at(-1)
    assert.deepEqual([asked?.target, asked?.archive], ['started', { id: archive?.id, sha256: 'a'.repeat(64) }])
  })

  test('if an archive cannot be restored, the sandbox stays archived, with the reason', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    await post(app, 'archive')
    await untilState(app, id, 'archived')
    runner.behave(() => ({ type: 'refuse', state: 'archived', reason: 'The store is away.' }))
    await post(app, 'start')
    await untilState(app, id, 'archived')
    assert.equal((await get(app, id)).errorReason, 'The store is away.')
    runner.behave(() => ({ type: 'do' }))
    await post(app, 'start')
    await untilState(app, id, 'started')
  })

  test('no time limit ends an archive that makes progress; the sandbox’s record shows the progress', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    runner.behave(() => ({ type: 'silent' }))
    await post(app, 'archive')
    const { generation } = await runner.untilAsked(({ target }) => target === 'archived')
    for (const percent of [25, 50]) {
      app.clock.advance({ minutes: 50 })
      runner.say({ type: 'progress', sandboxId: id, generation, step: 'packing', percent })
      while ((await get(app, id)).progress?.percent !== percent) await new Promise(setImmediate)
      await app.sweep()
      assert.equal((await get(app, id)).state, 'archiving')
    }
    // A report with an unchanged percentage, or about an older generation, does not count as progress.
    app.clock.advance({ minutes: 50 })
    runner.say({ type: 'progress', sandboxId: id, generation, step: 'packing', percent: 50 })
    runner.say({ type: 'progress', sandboxId: id, generation: generation - 1, step: 'packing', percent: 51 })
    runner.say({ type: 'alive' })
    app.clock.advance({ minutes: 10 })
    await app.sweep()
    assert.deepEqual([(await get(app, id)).state, (await get(app, id)).progress], ['error', undefined])
    // The runner completes the archive after control has set the state to `error`. Control accepts the runner's report.
    runner.perform(await runner.untilAsked(({ target }) => target === 'archived'))
    await untilState(app, id, 'archived')
  })

  test('POST /sandbox/:sandboxIdOrName/archive answers 404 to strangers, 403 to a viewer, 400 in the state `error`', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    assert.equal((await app.as('stranger').post('/sandbox/box/archive')).status, 404)
    assert.equal((await app.as('viewer').post('/sandbox/box/archive')).status, 403)
    await post(app, 'archive')
    await untilState(app, id, 'archived')
    await app.as('owner').delete('/sandbox/box')
    await untilState(app, id, 'destroyed')
    assert.notEqual(runner.asked.at(-1)?.archive?.id, undefined)
    runner.behave(() => ({ type: 'fail', reason: 'no' }))
    await create(app)
    assert.equal((await post(app, 'archive')).status, 400)
  })
})

suite('DELETE of an archived sandbox', () => {
  test('if the runner of an archived sandbox is silent, another runner of the region gets the delete', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    await post(app, 'archive')
    await untilState(app, id, 'archived')
    app.clock.advance({ minutes: 1 })
    await app.sweep()
    await app.database.sql`
      insert into runners (id, region_id, key_hash, state, created_at, updated_at)
      values ('other', 'local', 'other', 'ready', now(), now())`
    const asked = runner.asked.length
    assert.equal((await app.as('owner').delete('/sandbox/box')).body.runnerId, 'other')
    assert.equal(runner.asked.length, asked)
  })
})

suite('POST /sandbox/:sandboxIdOrName/autopause/:interval', () => {
  test('a sandbox is paused after `autoPauseInterval` minutes without activity; the timeline says why', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app, { autoPauseInterval: 5 })
    assert.deepEqual([(await get(app, id)).autoStopInterval, (await get(app, id)).autoPauseInterval], [0, 5])
    await app.pass({ minutes: 4, seconds: 59 })
    await app.sweep()
    assert.equal((await get(app, id)).state, 'started')
    await app.pass({ seconds: 1 })
    await app.sweep()
    await untilState(app, id, 'paused')
    const pause = (await eventsOf(app, id)).find(({ to_state }) => to_state === 'pausing')
    assert.deepEqual([pause?.by_id, pause?.reason], ['auto-pause', 'Paused after 5 minutes without activity.'])
  })

  test('autopause cannot be combined with autostop or an immediate autodelete (400), whichever is set first', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    await create(app)
    const set = async (path: string) => (await app.as('member').post(`/sandbox/box/${path}`)).status
    assert.equal(await set('autopause/5'), 400)
    assert.equal(await set('autopause/0'), 200)
    assert.equal(await set('autostop/0'), 200)
    assert.equal(await set('autodelete/0'), 200)
    assert.equal(await set('autopause/5'), 400)
    assert.equal(await set('autodelete/-1'), 200)
    assert.equal(await set('autopause/5'), 200)
    assert.equal(await set('autostop/5'), 400)
    assert.equal(await set('autodelete/0'), 400)
    assert.equal(await set('autodelete/7'), 200)
    assert.equal(await set('autostop/0'), 200)
    assert.equal(await set('autopause/0'), 200)
    const both = await Promise.all(['autopause/5', 'autostop/5', 'autopause/6', 'autostop/6'].map(set))
    assert.ok(both.includes(200) && both.includes(400))
    const { autoStopInterval, autoPauseInterval } = await get(app, 'box')
    assert.equal(autoStopInterval * autoPauseInterval, 0)
  })
})
