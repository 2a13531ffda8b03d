// Tests the guarantee of the outbox: a message exists if and only if its change was committed and an endpoint
// subscribes to it.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { SandboxEvent } from '#src/control/sandboxes/record/schemas.ts'
import { openDatabase } from '#src/control/storage/database.ts'
import { type ControlOptions, startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'
import { loopback } from '#test/control/test-settings.ts'
import { startReceiver } from '#test/control/webhook-receiver.ts'
import { forgetOld } from './queue.ts'

const { ours } = organizations

const start = (options: ControlOptions = {}) =>
  startControl({
    ...options,
    settings: { privateTargets: loopback },
    sandboxes: { createWaitSeconds: 20, ...options.sandboxes },
  })

const addEndpoint = async (app: TestControl, url: string, more: object = {}) => {
  const reply = await app.as('owner').post(`/webhooks/organizations/${ours}/endpoints`, { url, ...more })
  assert.equal(reply.status, 201, reply.text)
  return reply.body as { id: string; secret: string }
}

const countMessages = async ({ database }: TestControl): Promise<number> => {
  const [row] = await database.sql<[{ count: number }]>`select count(*) from webhook_messages`
  return row.count
}

suite('the webhook messages that a change stores', () => {
  test('for an organization without webhook endpoints, no webhook messages are stored', async () => {
    await using app = await start()
    await using _runner = await connectRunner(app)
    await app.as('owner').post('/sandbox', { name: 'before' })
    await app.as('owner').post(`/webhooks/organizations/${ours}/initialize`)
    await app.as('owner').post('/sandbox', { name: 'after' })
    assert.equal(await countMessages(app), 0)
    // Only the organization `ours` has a webhook endpoint. So a change of another organization stores no message.
    await addEndpoint(app, 'http://127.0.0.1:1/')
    await app.as('stranger').post('/sandbox', { name: 'theirs' })
    assert.equal(await countMessages(app), 0)
  })

  test('each change of a sandbox’s state is sent as a webhook, in order', async () => {
    await using app = await start()
    await using receiver = await startReceiver()
    await using _runner = await connectRunner(app)
    await addEndpoint(app, `${receiver.url}/hook`)
    const { id } = (await app.as('member').post('/sandbox', { name: 'box' })).body
    await app.as('member').post('/sandbox/box/stop')
    await untilState(app, id, 'stopped')
    await app.as('owner').delete('/sandbox/box')
    const came = await receiver.until(6)
    const { body } = await app.as('owner').get(`/sandbox/${id}/events?order=asc`)
    const timeline = body.items as SandboxEvent[]
    assert.deepEqual(
      came.map(({ payload }) => payload),
      timeline.map(({ at, from, to, id: _, ...why }) => ({
        event: from === null ? 'sandbox.created' : 'sandbox.state.updated',
        timestamp: at,
        id,
        organizationId: ours,
        name: 'box',
        labels: {},
        ...why,
        ...(from === null
          ? { state: to, sandboxClass: 'container', createdAt: at }
          : { oldState: from, newState: to, updatedAt: at }),
      })),
    )
    assert.equal(new Set(came.map(({ id: messageId }) => messageId)).size, came.length)
  })

  test('no webhook is sent for a change that is rolled back', async () => {
    await using app = await start()
    await using receiver = await startReceiver()
    await using _runner = await connectRunner(app)
    await addEndpoint(app, receiver.url)
    const { id } = (await app.as('member').post('/sandbox', { name: 'box' })).body
    await receiver.until(2)
    await app.database
      .transaction(async (transaction) => {
        await transaction`update sandboxes set state = 'error' where id = ${id}`
        const [row] = await transaction`select count(*) from webhook_messages where state = 'error'`
        assert.equal(row?.['count'], 1)
        throw new Error('rolled back')
      })
      .catch(() => {})
    await app.as('member').post('/sandbox/box/stop')
    await receiver.until(4)
    assert.deepEqual(
      receiver.received.map(({ payload }) => payload.newState ?? payload.state),
      ['creating', 'started', 'stopping', 'stopped'],
    )
  })

  test('the webhook of a change that commits late is sent, even if webhooks of later changes were sent first', async () => {
    await using app = await start()
    await using receiver = await startReceiver()
    await using _runner = await connectRunner(app)
    await addEndpoint(app, receiver.url)
    const slow = (await app.as('member').post('/sandbox', { name: 'slow' })).body.id
    await app.as('member').post('/sandbox', { name: 'fast' })
    await receiver.until(4)
    const other = openDatabase(app.url, { max: 1 })
    try {
      // A transaction that writes its message first, and commits last. Before it commits, the messages of later changes
      // are sent.
      await other.transaction(async (transaction) => {
        await transaction`update sandboxes set state = 'error' where id = ${slow}`
        await app.as('member').post('/sandbox/fast/stop')
        await receiver.until(6)
      })
    } finally {
      await other.close()
    }
    const [late] = await receiver.until(1, ({ payload }) => payload.id === slow && payload.newState === 'error')
    assert.ok(late)
    const rows = await app.database.sql<{ subject: string }[]>`
      select subject_id as subject from webhook_messages order by id desc limit 3`
    assert.equal(rows[2]?.subject, slow)
  })

  test('webhooks are sent when a snapshot is made, changes its state, and is removed', async () => {
    await using app = await start()
    await using receiver = await startReceiver()
    await using runner = await connectRunner(app)
    await addEndpoint(app, receiver.url, { events: ['snapshot.created', 'snapshot.state.updated', 'snapshot.removed'] })
    runner.behaveWithImages(() => 'do')
    const made = await app.as('owner').post('/snapshots', { name: 'tools', imageName: 'docker.io/library/debian:12' })
    assert.equal(made.status, 200, made.text)
    const { id } = made.body
    await receiver.until(2)
    assert.equal((await app.as('owner').delete('/snapshots/tools')).status, 200)
    const came = await receiver.until(3)
    const common = { id, organizationId: ours, name: 'tools' }
    const [created, updated, removed] = came.map(({ payload: { timestamp, ...payload } }) => {
      assert.equal(new Date(timestamp).toISOString(), timestamp)
      return payload
    })
    const { createdAt } = created
    assert.deepEqual(created, { ...common, event: 'snapshot.created', state: 'pending', createdAt })
    const { updatedAt } = updated
    const states = { oldState: 'pending', newState: 'active' }
    assert.deepEqual(updated, { ...common, event: 'snapshot.state.updated', ...states, updatedAt })
    const { removedAt } = removed
    assert.deepEqual(removed, { ...common, event: 'snapshot.removed', removedAt })
  })

  test('no webhooks are sent about a warm sandbox until a create claims it', async () => {
    await using app = await start()
    await using receiver = await startReceiver()
    await using _runner = await connectRunner(app)
    await addEndpoint(app, receiver.url)
    const pool = await app.as('owner').post('/warm-pools', { snapshot: 'default', pool: 1, target: 'local' })
    assert.ok(pool.status < 300, pool.text)
    for (const end = Date.now() + 20_000; Date.now() < end; ) {
      await app.sweep()
      const [row] = await app.database.sql`select 1 from sandboxes where state = 'started' and warm_pool_id is not null`
      if (row) break
    }
    assert.equal(await countMessages(app), 0)
    const { id } = (await app.as('member').post('/sandbox', {})).body
    const [first] = await receiver.until(1)
    const { event, id: told, state } = first?.payload ?? {}
    assert.deepEqual([event, told, state], ['sandbox.created', id, 'started'])
    const [claimed] = await app.database.sql`select 1 from sandbox_events where reason = 'Claimed from a warm pool.'`
    assert.ok(claimed, 'it was not taken from the pool')
  })

  test('if too many webhook messages are stored, the organization with the most loses its oldest sent ones', async () => {
    await using app = await start()
    const { sql } = app.database
    await sql`
      insert into webhook_messages (organization_id, event, subject_id, state, at, is_dispatched)
      select case when n % 10 = 0 then 'small' else 'large' end, 'sandbox.created', 'a', 'started',
        ${app.clock.now()}::timestamptz - n * interval '1 second', n % 7 <> 0
      from generate_series(1, 20000) n`
    await sql`
      insert into webhook_deliveries (message_id, organization_id, endpoint_id, lane, state)
      select id, organization_id, 'a', 'a', 'waiting' from webhook_messages where at < ${app.clock.now()}::timestamptz - interval '19000 seconds'`
    const [{ waiting } = {}] = await sql`select count(*) as waiting from webhook_deliveries`
    await sql`analyze webhook_messages`
    const count = async (organizationId: string) =>
      (await sql`select from webhook_messages where organization_id = ${organizationId}`).count
    for (let tidied = 0; tidied < 10 && (await count('large')) === 18_000; tidied++)
      await forgetOld(sql, app.clock.now(), 15_000)
    assert.deepEqual([await count('small'), await count('large')], [2_000, 13_000])
    assert.equal((await sql`select from webhook_deliveries where state = 'waiting'`).count, waiting)
    assert.equal((await sql`select from webhook_messages where not is_dispatched`).count, Math.floor(20_000 / 7))
  })
})
