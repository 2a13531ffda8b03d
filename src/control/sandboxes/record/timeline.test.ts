import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { userId } from '#test/control/people.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'
import type { SandboxEvent } from './schemas.ts'
import { sweepEvents } from './timeline.ts'

const waiting = { sandboxes: { createWaitSeconds: 20 } }

const create = async (app: TestControl, body: object = {}): Promise<string> =>
  (await app.as('member').post('/sandbox', { name: 'box', ...body })).body.id

const eventsOf = async (app: TestControl, idOrName: string, query = ''): Promise<SandboxEvent[]> => {
  const reply = await app.as('viewer').get(`/sandbox/${idOrName}/events?${query}`)
  assert.equal(reply.status, 200, reply.text)
  return reply.body.items
}

suite('GET /sandbox/{sandboxIdOrName}/events', () => {
  test('GET /sandbox/{sandboxIdOrName}/events returns the newest first, with states, time, actor and reason', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    app.clock.advance({ minutes: 1 })
    const { generation } = await runner.untilAsked(({ sandboxId }) => sandboxId === id)
    const cause = { oomKilled: true, signal: 'SIGKILL', detail: 'It ran out of memory (limit 1 GiB) and was killed.' }
    const report = { sandboxId: id, generation, state: 'error', errorReason: cause.detail, recoverable: true } as const
    runner.report({ ...report, cause })
    await untilState(app, id, 'error')
    const events = await eventsOf(app, 'box')
    assert.deepEqual(
      events.map(({ from, to, by }) => [from, to, by.kind]),
      [
        ['started', 'error', 'runner'],
        ['creating', 'started', 'runner'],
        [null, 'creating', 'user'],
      ],
    )
    const [end, , first] = events
    assert.deepEqual([end?.at, end?.reason, end?.cause], [app.clock.now().toISOString(), cause.detail, cause])
    assert.deepEqual([first?.by.id, first?.reason, first?.cause], [userId('member'), undefined, undefined])
    assert.deepEqual(await eventsOf(app, id, 'order=asc'), events.toReversed())
  })

  test('GET /sandbox/{sandboxIdOrName}/events names the timer that stopped the sandbox', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app, { autoStopInterval: 15 })
    await app.pass({ minutes: 15 })
    await app.sweep()
    await untilState(app, id, 'stopped')
    const stop = (await eventsOf(app, id)).find(({ to }) => to === 'stopping')
    assert.deepEqual(
      [stop?.by, stop?.reason],
      [{ kind: 'timer', id: 'auto-stop' }, 'Stopped after 15 minutes without activity.'],
    )
  })

  test('GET /sandbox/{sandboxIdOrName}/events lists a process that was killed for lack of memory while its sandbox kept running', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const id = await create(app)
    const cause = { oomKilled: true, signal: 'SIGKILL', detail: 'It ran out of memory.\0' }
    runner.say({ type: 'mishap', sandboxId: 'nobody', cause })
    runner.say({ type: 'mishap', sandboxId: id, cause })
    // The test polls the timeline, because a mishap changes no state that the test could wait for.
    let mishap: SandboxEvent | undefined
    for (const end = Date.now() + 20_000; mishap === undefined && Date.now() < end; )
      mishap = (await eventsOf(app, id)).find(({ from, to }) => from === to)
    assert.deepEqual(
      [mishap?.from, mishap?.by.kind, mishap?.reason, mishap?.cause],
      ['started', 'runner', 'It ran out of memory.', { ...cause, detail: 'It ran out of memory.' }],
    )
  })

  test('GET /sandbox/{sandboxIdOrName}/events lists each event once over all pages, even while events are added', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app)
    for (let round = 0; round < 3; round++) {
      await app.as('member').post('/sandbox/box/stop')
      await untilState(app, id, 'stopped')
      await app.as('member').post('/sandbox/box/start')
      await untilState(app, id, 'started')
    }
    const whole = await eventsOf(app, id)
    for (const order of ['asc', 'desc']) {
      const pages: SandboxEvent[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const at: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
        const { status, body } = await app.as('viewer').get(`/sandbox/box/events?limit=4&order=${order}${at}`)
        assert.equal(status, 200)
        if (cursor === '') await app.as('member').post('/sandbox/box/stop')
        pages.push(...body.items)
        cursor = body.nextCursor
      }
      const ids = pages.map((event) => event.id)
      assert.equal(new Set(ids).size, ids.length)
      for (const event of whole) assert.ok(ids.includes(event.id))
      await untilState(app, id, 'stopped')
    }
  })

  test('GET /sandbox/{sandboxIdOrName}/events finds a deleted sandbox by its id, until its events are deleted', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app)
    assert.equal((await app.as('owner').delete('/sandbox/box')).status, 200)
    await untilState(app, id, 'destroyed')
    assert.equal((await eventsOf(app, id))[0]?.to, 'destroyed')
    assert.equal((await app.as('viewer').get('/sandbox/box/events')).status, 404)
    assert.equal((await app.as('stranger').get(`/sandbox/${id}/events`)).status, 404)
    app.clock.advance({ hours: 25 })
    await app.sweep()
    assert.equal((await eventsOf(app, id))[0]?.to, 'destroyed')
    app.clock.advance({ hours: 30 * 24 })
    await app.sweep()
    assert.equal((await app.as('viewer').get(`/sandbox/${id}/events`)).status, 404)
  })

  test('GET /sandbox/{sandboxIdOrName}/events answers 404 for another organization’s sandbox, 400 for bad input, 401 without a key', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app)
    assert.equal((await app.as('viewer').get('/sandbox/nobody/events')).status, 404)
    assert.equal((await app.as('stranger').get(`/sandbox/${id}/events`)).status, 404)
    assert.equal((await app.as('stranger').get('/sandbox/box/events')).status, 404)
    const made = (parts: unknown) => Buffer.from(JSON.stringify(parts)).toString('base64url')
    const cursors = [
      made(['events', 'asc', 1, id]),
      made(['events', 'desc', 1e300, id]),
      made(['events', 'desc', -1, id]),
    ]
    const bad = ['limit=0', 'limit=201', 'order=up', 'cursor=x', ...cursors.map((each) => `cursor=${each}`)]
    for (const each of bad) {
      assert.equal((await app.as('viewer').get(`/sandbox/box/events?${each}`)).status, 400, each)
    }
    assert.equal((await app.as('nobody').get('/sandbox/box/events')).status, 401)
  })

  test('GET /sandbox/{sandboxIdOrName}/events returns an empty list if all events were deleted because of their age', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const id = await create(app, { autoStopInterval: 0 })
    app.clock.advance({ hours: 31 * 24 })
    await app.sweep()
    assert.deepEqual(await eventsOf(app, id), [])
  })

  test('if there are too many sandbox events, the organization with the most loses its oldest events', async () => {
    await using app = await startControl()
    const { sql } = app.database
    await sql`
      insert into sandbox_events (sandbox_id, organization_id, to_state, at, by_kind, by_id)
      select 'a', case when n % 10 = 0 then 'small' else 'large' end, 'started', ${app.clock.now()}::timestamptz - n * interval '1 second',
        'user', 'a' from generate_series(1, 20000) n`
    await sql`analyze sandbox_events`
    const count = async (organizationId: string) =>
      (await sql`select from sandbox_events where organization_id = ${organizationId}`).count
    // A sweep only estimates the number of events. If the estimate is too low, a later sweep deletes the surplus.
    for (let sweep = 0; sweep < 10 && (await count('large')) === 18_000; sweep++) await sweepEvents(app.parts, 15_000)
    assert.deepEqual([await count('small'), await count('large')], [2_000, 13_000])
    const [oldest] = await sql`select min(at) as at from sandbox_events where organization_id = 'large'`
    assert.ok(oldest!['at'].getTime() > app.clock.now().getTime() - 15_000_000)
  })
})
