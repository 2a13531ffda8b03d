import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { lockQueue } from './queue.ts'

const { ours, theirs } = organizations
const base = `/webhooks/organizations/${ours}`
const url = 'https://hooks.example.com/alcove'

const add = async (app: TestControl, body: object = { url }) => await app.as('owner').post(`${base}/endpoints`, body)

/** Returns whether any transaction waits for an advisory lock that another transaction holds. */
const isSomebodyWaiting = async ({ database }: TestControl) => {
  const [waiting] = await database.sql`
    select 1 from pg_locks join pg_database on pg_database.oid = pg_locks.database
    where datname = current_database() and locktype = 'advisory' and not granted`
  return waiting !== undefined
}

const withoutProvider = () => startControl({ settings: { webhooks: { kind: 'none' } } })

suite('GET /webhooks/organizations/{organizationId}/initialization-status', () => {
  test('GET /webhooks/organizations/{organizationId}/initialization-status answers members 404 before webhooks are initialized, then 200', async () => {
    await using app = await startControl()
    assert.equal((await app.as('owner').get(`${base}/initialization-status`)).status, 404)
    const made = await app.as('owner').post(`${base}/initialize`)
    const shown = await app.as('viewer').get(`${base}/initialization-status`)
    assert.deepEqual([made.status, shown.status], [200, 200])
    assert.deepEqual(shown.body, made.body)
  })

  test('GET /webhooks/organizations/{organizationId}/initialization-status answers 404 to members of other organizations', async () => {
    await using app = await startControl()
    await app.as('owner').post(`${base}/initialize`)
    assert.equal((await app.as('stranger').get(`${base}/initialization-status`)).status, 404)
    assert.equal((await app.as('stranger').get(`/webhooks/organizations/${theirs}/initialization-status`)).status, 404)
  })
})

suite('POST /webhooks/organizations/{organizationId}/initialize', () => {
  test('POST /webhooks/organizations/{organizationId}/initialize returns the id of the organization’s webhook application; repeated calls raise `retryCount`', async () => {
    await using app = await startControl()
    const { status, body } = await app.as('owner').post(`${base}/initialize`)
    assert.equal(status, 200)
    const { webhookProviderApplicationId, svixApplicationId, createdAt, updatedAt, ...rest } = body
    assert.ok(webhookProviderApplicationId.length > 0)
    assert.equal(svixApplicationId, webhookProviderApplicationId)
    for (const date of [createdAt, updatedAt]) assert.equal(new Date(date).toISOString(), date)
    assert.deepEqual(rest, { organizationId: ours, lastError: null, retryCount: 0 })
    const again = (await app.as('owner').post(`${base}/initialize`)).body
    assert.deepEqual([again.retryCount, again.svixApplicationId], [1, svixApplicationId])
  })

  test('POST /webhooks/organizations/{organizationId}/initialize answers 403 to members, 503 if the server has no webhook provider', async () => {
    await using app = await startControl()
    assert.equal((await app.as('member').post(`${base}/initialize`)).status, 403)
    await using bare = await withoutProvider()
    for (const call of ['initialize', 'app-portal-access', 'refresh-endpoints', 'endpoints']) {
      const body = call === 'endpoints' ? { url } : undefined
      assert.equal((await bare.as('owner').post(`${base}/${call}`, body)).status, 503, call)
    }
    assert.equal((await bare.as('owner').get(`${base}/endpoints`)).status, 503)
  })
})

suite('POST /webhooks/organizations/{organizationId}/app-portal-access', () => {
  test('POST /webhooks/organizations/{organizationId}/app-portal-access returns a link, and initializes webhooks if needed', async () => {
    await using app = await startControl()
    const { status, body } = await app.as('owner').post(`${base}/app-portal-access`)
    assert.equal(status, 200)
    assert.equal(body.url, `http://control.test:3000/api/webhooks/portal?token=${body.token}`)
    assert.equal((await app.as('owner').get(`${base}/initialization-status`)).status, 200)
  })

  test('POST /webhooks/organizations/{organizationId}/app-portal-access answers 403 to members', async () => {
    await using app = await startControl()
    assert.equal((await app.as('member').post(`${base}/app-portal-access`)).status, 403)
  })
})

suite('POST /webhooks/organizations/{organizationId}/refresh-endpoints', () => {
  test('POST /webhooks/organizations/{organizationId}/refresh-endpoints answers 200, 404 before webhooks are initialized, 403 to members', async () => {
    await using app = await startControl()
    assert.equal((await app.as('owner').post(`${base}/refresh-endpoints`)).status, 404)
    await app.as('owner').post(`${base}/initialize`)
    const { status, text } = await app.as('owner').post(`${base}/refresh-endpoints`)
    assert.deepEqual([status, text], [200, ''])
    assert.equal((await app.as('member').post(`${base}/refresh-endpoints`)).status, 403)
  })
})

suite('POST /webhooks/organizations/{organizationId}/endpoints', () => {
  test('POST /webhooks/organizations/{organizationId}/endpoints returns the endpoint’s secret once; the stored secret is encrypted', async () => {
    await using app = await startControl()
    const { status, body } = await add(app, {
      url,
      description: ' Ours ',
      events: ['sandbox.created', 'sandbox.created'],
    })
    assert.equal(status, 201)
    const { id, secret, createdAt, updatedAt, ...rest } = body
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.deepEqual(rest, {
      url,
      description: 'Ours',
      events: ['sandbox.created'],
      disabled: false,
      disabledReason: null,
      failingSince: null,
    })
    const listed = await app.as('owner').get(`${base}/endpoints`)
    assert.deepEqual(listed.body, [{ id, ...rest, createdAt, updatedAt }])
    const [row] = await app.database.sql`select to_jsonb(e)::text as text from webhook_endpoints e`
    assert.ok(!row?.['text'].includes(secret.slice(6)))
  })

  test('POST /webhooks/organizations/{organizationId}/endpoints answers 400 for a forbidden URL or an unknown event', async () => {
    await using app = await startControl()
    for (const body of [
      {},
      { url: '' },
      { url: 'hooks.example.com' },
      { url: 'ftp://example.com' },
      { url: 'https://user:password@example.com' },
      { url: `https://example.com/${'x'.repeat(2048)}` },
      { url, events: ['sandbox.exploded'] },
      { url, events: 'sandbox.created' },
      { url, description: 'see https://example.com' },
      { url, description: 'x'.repeat(256) },
    ]) {
      assert.equal((await add(app, body)).status, 400, JSON.stringify(body))
    }
    assert.deepEqual((await app.as('owner').get(`${base}/endpoints`)).body, [])
  })

  test('POST /webhooks/organizations/{organizationId}/endpoints answers 403 to members, 409 above twenty endpoints', async () => {
    await using app = await startControl()
    assert.equal((await app.as('member').post(`${base}/endpoints`, { url })).status, 403)
    const replies = await Promise.all(Array.from({ length: 22 }, () => add(app)))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [...Array(20).fill(201), 409, 409])
  })

  test('POST /webhooks/organizations/{organizationId}/endpoints answers 409 if Svix stores the endpoints', async () => {
    const webhooks = { kind: 'svix', url: 'http://127.0.0.1:1', token: 'x' } as const
    await using app = await startControl({ settings: { webhooks } })
    const { status, body } = await add(app)
    assert.equal(status, 409)
    assert.match(body.message, /app-portal-access/)
  })
})

suite('the calls about a single endpoint', () => {
  test('GET /webhooks/organizations/{organizationId}/endpoints lists webhook endpoints, and GET /webhooks/organizations/{organizationId}/endpoints/{endpointId} returns one endpoint or 404', async () => {
    await using app = await startControl()
    const { id } = (await add(app)).body
    const shown = await app.as('owner').get(`${base}/endpoints/${id}`)
    assert.deepEqual([shown.status, shown.body.url, shown.body.secret], [200, url, undefined])
    assert.equal((await app.as('owner').get(`${base}/endpoints/ep_none`)).status, 404)
    assert.equal((await app.as('member').get(`${base}/endpoints`)).status, 403)
  })

  test('each call about another organization’s webhook endpoint answers 404', async () => {
    await using app = await startControl()
    const foreign = `/webhooks/organizations/${theirs}/endpoints`
    const { id } = (await app.as('stranger').post(foreign, { url })).body
    const at = `${base}/endpoints/${id}`
    const { as } = app
    const replies = await Promise.all([
      as('owner').get(at),
      as('owner').patch(at, { disabled: true }),
      as('owner').delete(at),
      as('owner').post(`${at}/rotate-secret`),
      as('owner').get(`${at}/attempts`),
      as('owner').post(`${at}/messages/msg_x/resend`),
    ])
    assert.deepEqual(
      replies.map(({ status }) => status),
      Array(6).fill(404),
    )
    assert.equal((await as('stranger').get(`${foreign}/${id}`)).body.disabled, false)
  })

  test('PATCH /webhooks/organizations/{organizationId}/endpoints/{endpointId} changes the given fields; invalid fields answer 400', async () => {
    await using app = await startControl()
    const { id } = (await add(app, { url, events: ['snapshot.removed'] })).body
    const at = `${base}/endpoints/${id}`
    const off = await app.as('owner').patch(at, { disabled: true })
    assert.deepEqual([off.status, off.body.disabled, off.body.url], [200, true, url])
    assert.match(off.body.disabledReason, /by an owner/)
    const on = await app.as('owner').patch(at, { disabled: false, url: `${url}/2`, events: [] })
    assert.deepEqual(
      [on.body.disabled, on.body.disabledReason, on.body.url, on.body.events],
      [false, null, `${url}/2`, []],
    )
    assert.equal((await app.as('owner').patch(at, { url: 'gopher://x' })).status, 400)
    assert.equal((await app.as('owner').patch(at, { disabled: 'no' })).status, 400)
    assert.equal((await app.as('owner').patch(`${base}/endpoints/none`, {})).status, 404)
    assert.equal((await app.as('member').patch(at, { disabled: true })).status, 403)
  })

  test('DELETE /webhooks/organizations/{organizationId}/endpoints/{endpointId} answers 204, and 404 the second time', async () => {
    await using app = await startControl()
    const { id } = (await add(app)).body
    assert.equal((await app.as('member').delete(`${base}/endpoints/${id}`)).status, 403)
    assert.equal((await app.as('owner').delete(`${base}/endpoints/${id}`)).status, 204)
    assert.equal((await app.as('owner').delete(`${base}/endpoints/${id}`)).status, 404)
  })

  test('POST /webhooks/organizations/{organizationId}/endpoints/{endpointId}/rotate-secret returns a new secret', async () => {
    await using app = await startControl()
    const { id, secret } = (await add(app)).body
    const { status, body } = await app.as('owner').post(`${base}/endpoints/${id}/rotate-secret`)
    assert.equal(status, 200)
    assert.ok(body.secret.startsWith('whsec_') && body.secret !== secret)
    assert.equal((await app.as('member').post(`${base}/endpoints/${id}/rotate-secret`)).status, 403)
  })

  test('GET /webhooks/organizations/{organizationId}/endpoints/{endpointId}/attempts returns pages of delivery attempts; a bad cursor answers 400', async () => {
    await using app = await startControl()
    const { id } = (await add(app)).body
    const { sql } = app.database
    await sql`
      with message as (
        insert into webhook_messages (organization_id, event, subject_id, at, is_dispatched)
        values (${ours}, 'sandbox.created', 'box', ${app.clock.now()}, true) returning id
      ), delivery as (
        insert into webhook_deliveries (message_id, organization_id, endpoint_id, lane, state)
        select id, ${ours}, ${id}, 'box', 'failed' from message returning id)
      insert into webhook_attempts (delivery_id, endpoint_id, number, at, duration_milliseconds, status, is_delivered)
      select id, ${id}, n, ${app.clock.now()}, 5, 500, false from delivery, generate_series(1, 3) n`
    const ask = (query: string) => app.as('owner').get(`${base}/endpoints/${id}/attempts${query}`)
    const first = await ask('?limit=2')
    assert.deepEqual(
      first.body.items.map(({ number }: { number: number }) => number),
      [3, 2],
    )
    const second = await ask(`?limit=2&cursor=${first.body.nextCursor}`)
    assert.deepEqual([second.body.items[0].number, second.body.items.length, second.body.nextCursor], [1, 1, null])
    for (const query of ['?limit=0', '?limit=201', '?cursor=x', '?cursor=-1'])
      assert.equal((await ask(query)).status, 400)
    assert.equal((await app.as('member').get(`${base}/endpoints/${id}/attempts`)).status, 403)
  })

  test('POST /webhooks/organizations/{organizationId}/endpoints/{endpointId}/messages/{messageId}/resend answers 404 for an unknown message, 409 for a disabled endpoint', async () => {
    await using app = await startControl()
    const { id } = (await add(app)).body
    const at = `${base}/endpoints/${id}/messages/msg_none/resend`
    assert.equal((await app.as('owner').post(at)).status, 404)
    assert.equal((await app.as('member').post(at)).status, 403)
    await app.as('owner').patch(`${base}/endpoints/${id}`, { disabled: true })
    assert.equal((await app.as('owner').post(at)).status, 409)
  })

  test('resending another organization’s webhook message answers 404, and the message is not sent', async () => {
    await using app = await startControl()
    const { id } = (await add(app)).body
    await app.database.sql`
      insert into webhook_messages (public_id, organization_id, event, subject_id, at, is_dispatched)
      select name, organization, 'sandbox.created', 'one', ${app.clock.now()}, true
      from (values ('msg_ours', ${ours}), ('msg_theirs', ${theirs})) messages (name, organization)`
    const resend = (message: string) => app.as('owner').post(`${base}/endpoints/${id}/messages/${message}/resend`)
    assert.deepEqual([(await resend('msg_ours')).status, (await resend('msg_theirs')).status], [202, 404])
    const queued = await app.database.sql`
      select public_id from webhook_deliveries d join webhook_messages m on m.id = d.message_id`
    assert.deepEqual([...queued], [{ public_id: 'msg_ours' }])
  })

  test('a webhook message is not queued again if its endpoint is deleted at the same moment', async () => {
    await using app = await startControl()
    const { id } = (await add(app)).body
    await app.database.sql`
      insert into webhook_messages (public_id, organization_id, event, subject_id, at, is_dispatched)
      values ('msg_one', ${ours}, 'sandbox.created', 'one', ${app.clock.now()}, true)`
    const resent = await app.database.transaction(async (transaction) => {
      await lockQueue(transaction)
      const asked = app.as('owner').post(`${base}/endpoints/${id}/messages/msg_one/resend`)
      while (!(await isSomebodyWaiting(app))) await pause(10)
      await transaction`delete from webhook_endpoints where id = ${id}`
      return { asked }
    })
    assert.equal((await resent.asked).status, 404)
    assert.deepEqual([...(await app.database.sql`select id from webhook_deliveries`)], [])
  })
})
