import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { type ControlOptions, startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { loopback } from '#test/control/test-settings.ts'
import { type Receiver, startReceiver, verify } from '#test/control/webhook-receiver.ts'
import { lockApplication } from './application-store.ts'
import { claim } from './queue.ts'
import { openWebhookRoom } from './room.ts'

const { ours } = organizations
const base = `/webhooks/organizations/${ours}`

const start = (options: ControlOptions = {}) =>
  startControl({ ...options, settings: { privateTargets: loopback, ...options.settings } })

const theirBase = `/webhooks/organizations/${organizations.theirs}`

type Added = { id: string; secret: string }

const addEndpoint = async (app: TestControl, url: string, more: object = {}): Promise<Added> => {
  const reply = await app.as('owner').post(`${base}/endpoints`, { url, ...more })
  assert.equal(reply.status, 201, reply.text)
  return reply.body
}

/** Inserts or changes a snapshot. A trigger of the database then writes the webhook message about the snapshot. */
const happen = async (
  { database }: TestControl,
  subject: string,
  state: string,
  whose: string = ours,
): Promise<void> => {
  await database.sql`
    insert into snapshots (id, organization_id, name, state, image, cpu, memory_gib, disk_gib)
    values (${subject}, ${whose}, ${subject}, ${state}, 'default', 1, 1, 1)
    on conflict (id) do update set state = excluded.state, updated_at = now()`
}

/** Returns the states of one snapshot, in the order in which the receiver got messages about them. */
const statesOf = ({ received }: Receiver, subject: string): string[] =>
  received
    .filter(({ payload }) => payload.id === subject)
    .map(({ payload }) => payload.newState ?? payload.state ?? 'removed')

const attemptsOf = async (app: TestControl, id: string) =>
  (await app.as('owner').get(`${base}/endpoints/${id}/attempts?limit=200`)).body.items as {
    status: number | null
    error: string | null
    delivered: boolean
    messageId: string
    number: number
  }[]

const endpointOf = async (app: TestControl, id: string) => (await app.as('owner').get(`${base}/endpoints/${id}`)).body

suite('the sending of webhook messages', () => {
  test('a receiver can verify a webhook with the secret, and with the old secret for a day after a rotation', async () => {
    await using app = await start()
    await using receiver = await startReceiver()
    const { id, secret } = await addEndpoint(app, `${receiver.url}/hooks?from=alcove`)
    await happen(app, 'first', 'pending')
    const [first] = await receiver.until(1)
    assert.ok(first)
    assert.deepEqual(verify(secret, first), first.payload)
    assert.deepEqual([first.path, first.headers['content-type']], ['/hooks?from=alcove', 'application/json'])
    assert.deepEqual(first.headers['svix-signature'], first.headers['webhook-signature'])

    const rotated = (await app.as('owner').post(`${base}/endpoints/${id}/rotate-secret`)).body.secret
    await happen(app, 'second', 'pending')
    const [, second] = await receiver.until(2)
    assert.ok(second)
    for (const one of [secret, rotated]) verify(one, second)
    app.clock.advance({ hours: 24 })
    await happen(app, 'third', 'pending')
    const [, , third] = await receiver.until(3)
    assert.ok(third)
    verify(rotated, third)
    assert.throws(() => verify(secret, third), /No matching signature/)
  })

  test('a webhook endpoint gets only the event types that its owner chose, and none while it is disabled', async () => {
    await using app = await start()
    await using receiver = await startReceiver()
    await addEndpoint(app, `${receiver.url}/all`)
    await addEndpoint(app, `${receiver.url}/made`, { events: ['snapshot.created'] })
    const { id } = await addEndpoint(app, `${receiver.url}/off`)
    await app.as('owner').patch(`${base}/endpoints/${id}`, { disabled: true })
    await happen(app, 'one', 'pending')
    await happen(app, 'one', 'active')
    await receiver.until(3)
    await app.app.webhooks.settled()
    assert.deepEqual(receiver.received.map(({ path, payload }) => `${path} ${payload.event}`).sort(), [
      '/all snapshot.created',
      '/all snapshot.state.updated',
      '/made snapshot.created',
    ])
  })

  test('a failed webhook is retried for over a day, at growing intervals; then the endpoint is disabled', async () => {
    await using app = await start()
    await using receiver = await startReceiver()
    const { id } = await addEndpoint(app, receiver.url)
    receiver.answer(() => 500)
    await happen(app, 'one', 'pending')
    await happen(app, 'one', 'active')
    await receiver.until(1)
    await app.app.webhooks.settled()
    const waits: number[] = []
    while ((await endpointOf(app, id)).disabled === false) {
      const [next] = await app.database.sql`select min(due_at) as at from webhook_deliveries where state = 'waiting'`
      const milliseconds = next?.['at'].getTime() - app.clock.now().getTime()
      waits.push(milliseconds)
      app.clock.advance({ milliseconds })
      await app.sweep()
      await app.app.webhooks.settled()
    }
    assert.equal(receiver.received.length, 11)
    assert.deepEqual(
      waits,
      waits.toSorted((one, other) => one - other),
    )
    const hours = waits.reduce((sum, wait) => sum + wait, 0) / 3_600_000
    assert.ok(hours > 24 && hours < 48, String(hours))
    // Every attempt sends the message under the same id, but with the time of the attempt in its signature.
    assert.deepEqual(statesOf(receiver, 'one'), Array(11).fill('pending'))
    assert.equal(new Set(receiver.received.map((one) => one.id)).size, 1)
    const { disabledReason } = await endpointOf(app, id)
    assert.match(disabledReason, /^No message has been delivered since .+\. The endpoint answered 500\.$/)
    // The later deliveries of the lane are marked as failed too.
    const [left] = await app.database.sql`select count(*) from webhook_deliveries where state = 'waiting'`
    assert.equal(left?.['count'], 0)
    await happen(app, 'two', 'pending')
    const [kept] = await app.database.sql`select count(*) from webhook_messages where subject_id = 'two'`
    assert.equal(kept?.['count'], 0)
    assert.equal((await attemptsOf(app, id)).length, 11)
  })

  test('a failing webhook delays only later webhooks about the same sandbox or snapshot', async () => {
    await using app = await start()
    await using receiver = await startReceiver()
    await addEndpoint(app, receiver.url)
    let isBroken = true
    receiver.answer(({ payload }) => (isBroken && payload.id === 'broken' ? 503 : 200))
    for (const subject of ['broken', 'fine'])
      for (const state of ['pending', 'pulling', 'active']) await happen(app, subject, state)
    await receiver.until(4)
    await app.app.webhooks.settled()
    assert.deepEqual(statesOf(receiver, 'fine'), ['pending', 'pulling', 'active'])
    assert.deepEqual(statesOf(receiver, 'broken'), ['pending'])
    isBroken = false
    app.clock.advance({ seconds: 10 })
    await app.sweep()
    await receiver.until(7)
    assert.deepEqual(statesOf(receiver, 'broken'), ['pending', 'pending', 'pulling', 'active'])
  })

  test('a reply 410 disables a webhook endpoint at once; redirects and private addresses are never called', async () => {
    await using app = await start()
    await using receiver = await startReceiver()
    receiver.answer(({ path }) => (path === '/gone' ? 410 : 302))
    const gone = await addEndpoint(app, `${receiver.url}/gone`)
    const moved = await addEndpoint(app, `${receiver.url}/moved`)
    const inside = await addEndpoint(app, 'http://169.254.169.254/latest/meta-data')
    const unnamed = await addEndpoint(app, 'http://[::1]:1/')
    await happen(app, 'one', 'pending')
    await receiver.until(2)
    await app.app.webhooks.settled()
    assert.match((await endpointOf(app, gone.id)).disabledReason, /410/)
    assert.deepEqual(receiver.received.map(({ path }) => path).sort(), ['/gone', '/moved'])
    const [redirect] = await attemptsOf(app, moved.id)
    assert.deepEqual([redirect?.status, redirect?.delivered], [302, false])
    for (const { id } of [inside, unnamed]) {
      const [refused] = await attemptsOf(app, id)
      assert.match(String(refused?.error), /not on the public Internet/)
      assert.equal((await endpointOf(app, id)).disabled, false)
    }
  })

  test('a webhook endpoint that answered 410 gets no more webhooks, even those that already wait', async () => {
    await using app = await start()
    await using receiver = await startReceiver()
    receiver.answer(() => 410)
    const { id } = await addEndpoint(app, receiver.url)
    await app.database.transaction(async (transaction) => {
      // The test holds the lock that is needed to disable the endpoint. Until the lock is released, the endpoint has
      // waiting deliveries.
      await lockApplication(transaction, ours)
      await happen(app, 'one', 'pending')
      await happen(app, 'one', 'active')
      await receiver.until(1)
      while ((await attemptsOf(app, id)).length === 0) await pause(10)
      const every = { room: 10, share: 10, busyEndpoints: [], busyOrganizations: [], now: app.clock.now() }
      assert.deepEqual(await claim(app.database.sql, 'embedded', every), [])
    })
    await app.app.webhooks.settled()
    assert.equal(receiver.received.length, 1)
    const [left] = await app.database.sql`select count(*) from webhook_deliveries where state = 'waiting'`
    assert.equal(left?.['count'], 0)
  })

  test('a webhook message that an owner resends arrives with its old id', async () => {
    await using app = await start()
    await using receiver = await startReceiver()
    const { id } = await addEndpoint(app, receiver.url)
    await happen(app, 'one', 'pending')
    const [first] = await receiver.until(1)
    await app.app.webhooks.settled()
    const path = `${base}/endpoints/${id}/messages/${first?.id}/resend`
    assert.equal((await app.as('owner').post(path)).status, 202)
    const [, second] = await receiver.until(2)
    assert.deepEqual([second?.id, second?.text], [first?.id, first?.text])
    await app.app.webhooks.settled()
    assert.deepEqual(
      (await attemptsOf(app, id)).map(({ messageId, delivered }) => [messageId, delivered]),
      [
        [first?.id, true],
        [first?.id, true],
      ],
    )
  })

  test('two control processes send each webhook once; webhooks about one sandbox or snapshot stay in order', async () => {
    await using app = await start()
    await using receiver = await startReceiver()
    const other = await openWebhookRoom(app.parts, { sweepSeconds: 0 })
    try {
      await addEndpoint(app, receiver.url)
      const subjects = Array.from({ length: 20 }, (_, index) => `subject-${index}`)
      const states = ['pending', 'pulling', 'active', 'inactive', 'error']
      await Promise.all(
        subjects.map(async (subject) => {
          for (const state of states) await happen(app, subject, state)
        }),
      )
      await receiver.until(subjects.length * states.length)
      await app.app.webhooks.settled()
      await other.settled()
      for (const subject of subjects) assert.deepEqual(statesOf(receiver, subject), states)
      assert.equal(receiver.received.length, subjects.length * states.length)
    } finally {
      await other.close()
    }
  })

  test('if a process dies after it claimed webhooks, another process sends them when the lease is over', async () => {
    await using app = await start()
    await using receiver = await startReceiver()
    const { id } = await addEndpoint(app, receiver.url)
    await app.app.webhooks.close()
    await happen(app, 'one', 'pending')
    const { sql } = app.database
    // Inserts a delivery whose row looks as if a process had claimed the delivery and then died.
    await sql`
      insert into webhook_deliveries (message_id, organization_id, endpoint_id, lane, state, attempts, due_at)
      select id, organization_id, ${id}, subject_id, 'waiting', 1, ${new Date(app.clock.now().getTime() + 30_000)}
      from webhook_messages`
    await sql`update webhook_messages set is_dispatched = true`
    const other = await openWebhookRoom(app.parts, { sweepSeconds: 0 })
    try {
      await other.sweep()
      await other.settled()
      assert.equal(receiver.received.length, 0)
      app.clock.advance({ seconds: 31 })
      await other.sweep()
      await receiver.until(1)
      await other.settled()
      assert.deepEqual(
        (await attemptsOf(app, id)).map(({ number, delivered }) => [number, delivered]),
        [[2, true]],
      )
    } finally {
      await other.close()
    }
  })

  test('a slow endpoint does not delay webhooks to another endpoint', async () => {
    await using app = await start()
    await using receiver = await startReceiver()
    const slow = Promise.withResolvers<number>()
    receiver.answer(({ path }) => (path === '/slow' ? slow.promise : 200))
    await addEndpoint(app, `${receiver.url}/slow`)
    for (let index = 0; index < 40; index++) await happen(app, `early-${index}`, 'pending')
    await receiver.until(5, ({ path }) => path === '/slow')
    await addEndpoint(app, `${receiver.url}/quick`)
    await happen(app, 'late', 'pending')
    await receiver.until(1, ({ path }) => path === '/quick')
    assert.ok(receiver.received.filter(({ path }) => path === '/slow').length <= 9)
    slow.resolve(200)
    await receiver.until(41, ({ path }) => path === '/slow')
  })

  test('slow endpoints of one organization, with many queued webhooks, do not delay other organizations', async () => {
    await using app = await start()
    await using receiver = await startReceiver()
    const slow = Promise.withResolvers<number>()
    receiver.answer(({ path }) => (path === '/slow' ? slow.promise : 200))
    for (let index = 0; index < 20; index++) {
      const { status } = await app.as('stranger').post(`${theirBase}/endpoints`, { url: `${receiver.url}/slow` })
      assert.equal(status, 201)
    }
    for (let index = 0; index < 10; index++) await happen(app, `theirs-${index}`, 'pending', organizations.theirs)
    await receiver.until(12, ({ path }) => path === '/slow')
    await addEndpoint(app, `${receiver.url}/quick`)
    for (let index = 0; index < 10; index++) await happen(app, `ours-${index}`, 'pending')
    await receiver.until(10, ({ path }) => path === '/quick')
    assert.ok(receiver.received.filter(({ path }) => path === '/slow').length <= 24)
    slow.resolve(200)
    await receiver.until(200, ({ path }) => path === '/slow')
  })

  test('a webhook endpoint with too many queued webhooks is disabled, and these webhooks fail', async () => {
    await using app = await start()
    await using receiver = await startReceiver()
    const { id } = await addEndpoint(app, receiver.url)
    await app.database.sql`
      with made as (
        insert into webhook_messages (organization_id, event, subject_id, state, at, is_dispatched)
        select ${ours}, 'snapshot.created', 'flood', 'pending', ${app.clock.now()}, true from generate_series(1, 10001)
        returning id)
      insert into webhook_deliveries (message_id, organization_id, endpoint_id, lane, state)
      select id, ${ours}, ${id}, 'flood', 'waiting' from made`
    await app.sweep()
    assert.match((await endpointOf(app, id)).disabledReason, /messages were waiting/)
    app.clock.advance({ hours: 24 * 8 })
    await app.sweep()
    app.clock.advance({ minutes: 2 })
    await app.sweep()
    app.clock.advance({ minutes: 2 })
    await app.sweep()
    const [left] = await app.database
      .sql`select (select count(*) from webhook_messages) + (select count(*) from webhook_deliveries) as count`
    assert.equal(left?.['count'], 0)
    assert.equal(receiver.received.length, 0)
  })
})
