// Tests against a server that follows the public description of the Svix API (https://api.svix.com/docs). Like Svix, this server
// refuses unknown body fields, forbidden characters in ids, and unknown queries.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'

const { ours } = organizations
const base = `/webhooks/organizations/${ours}`
const token = 'testsk_secret.eu'

type Call = { method: string; path: string; query: string; body: Record<string, unknown> | undefined }

// Returns whether Svix accepts the value as an event type, a `uid` or an `eventId`.
const isName = (value: unknown) => typeof value === 'string' && /^[\w.-]{1,256}$/.test(value)
const isText = (value: unknown) => typeof value === 'string' && value.length > 0
const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)

type Shape = { needs: Record<string, (value: unknown) => boolean>; may?: Record<string, (value: unknown) => boolean> }

const shapes = {
  application: { needs: { name: isText }, may: { uid: isName } },
  message: { needs: { eventType: isName, payload: isObject }, may: { eventId: isName } },
  portal: { needs: {} },
} satisfies Record<string, Shape>

const fits = (body: unknown, { needs, may = {} }: Shape): boolean => {
  if (!isObject(body)) return false
  const fields = Object.entries(body as Record<string, unknown>)
  const isKnown = ([name, value]: [string, unknown]) => (needs[name] ?? may[name])?.(value) === true
  return fields.every(isKnown) && Object.keys(needs).every((name) => Object.hasOwn(body as object, name))
}

/** The query strings that the Svix client and our code send. The fake server refuses all others. */
const queries = ['', '?get_if_exists=true', '?limit=1', '?with_content=false']

/**
 * A fake Svix server that stores applications by uid and messages by event id. `state.endpoints` is the number of endpoints that
 * the server reports.
 */
const startSvix = async () => {
  const calls: Call[] = []
  const applications = new Map<string, { id: string; name: string; uid: string }>()
  const messages = new Map<string, Record<string, unknown>>()
  const state = { endpoints: 0, failWith: undefined as number | undefined }
  const now = new Date().toISOString()
  const applicationOf = (id: string) => [...applications.values()].find((one) => one.id === id || one.uid === id)

  const shapeOf = (path: string): Shape => {
    if (path.endsWith('/msg')) return shapes.message
    return path.includes('/app-portal-access/') ? shapes.portal : shapes.application
  }

  const answer = (call: Call): [status: number, body: unknown] => {
    const { method, path, body = {}, query } = call
    if (!queries.includes(query) || (method === 'POST' && !fits(call.body, shapeOf(path))))
      return [422, { detail: [{ loc: ['body'], msg: 'not as described', type: 'value_error' }] }]
    if (state.failWith !== undefined) return [state.failWith, { code: 'server_error', detail: 'no' }]
    const problem = (status: number, code: string): [number, unknown] => [status, { code, detail: code }]
    if (method === 'POST' && path === '/api/v1/app') {
      const uid = String(body['uid'])
      const found = applications.get(uid)
      if (found && !query.includes('get_if_exists=true')) return problem(409, 'conflict')
      const made = found ?? { id: `app_${applications.size + 1}`, name: String(body['name']), uid }
      applications.set(uid, made)
      return [found ? 200 : 201, { ...made, metadata: {}, createdAt: now, updatedAt: now }]
    }
    const [, id = '', rest = ''] = /^\/api\/v1\/(?:app|auth\/app-portal-access)\/([^/]+)(.*)$/.exec(path) ?? []
    if (applicationOf(id) === undefined) return problem(404, 'not_found')
    if (method === 'POST' && path.includes('app-portal-access'))
      return [200, { token: 'appsk_x', url: 'https://app.svix.test/login#key=x' }]
    if (method === 'GET' && rest === '/endpoint') {
      const data = Array.from({ length: state.endpoints }, (_, index) => ({
        id: `ep_${index}`,
        url: 'https://example.com',
        description: '',
        version: 1,
        metadata: {},
        createdAt: now,
        updatedAt: now,
      }))
      return [200, { data: data.slice(0, 1), done: true, iterator: null }]
    }
    if (method === 'POST' && rest === '/msg') {
      const eventId = String(body['eventId'])
      if (messages.has(eventId)) return problem(409, 'conflict')
      messages.set(eventId, body)
      return [202, { id: 'msg_at_svix', eventType: body['eventType'], payload: body['payload'], timestamp: now }]
    }
    return problem(404, 'not_found')
  }

  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const text = Buffer.concat(pieces).toString()
    const { pathname: path, search: query } = new URL(request.url ?? '', 'http://svix.test')
    const call = { method: request.method ?? '', path, query, body: text === '' ? undefined : JSON.parse(text) }
    calls.push(call)
    const isJson = text === '' || request.headers['content-type'] === 'application/json'
    const isAllowed = isJson && request.headers.authorization === `Bearer ${token}`
    const [status, body] = isAllowed ? answer(call) : [401, { code: 'authentication_failed', detail: 'no' }]
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    messages,
    state,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const start = (url: string, given = token) =>
  startControl({ settings: { webhooks: { kind: 'svix', url, token: given } } })

const happen = async ({ database }: TestControl, subject: string, state = 'pending'): Promise<void> => {
  await database.sql`
    insert into snapshots (id, organization_id, name, state, image, cpu, memory_gib, disk_gib)
    values (${subject}, ${ours}, ${subject}, ${state}, 'default', 1, 1, 1)
    on conflict (id) do update set state = excluded.state, updated_at = now()`
}

/** Waits until all messages have been handed over to Svix. */
const emptied = async (app: TestControl): Promise<void> => {
  for (const end = Date.now() + 30_000; Date.now() < end; ) {
    await app.sweep()
    await app.app.webhooks.settled()
    const [left] = await app.database.sql`
      select 1 from webhook_messages where not is_dispatched union all
      select 1 from webhook_deliveries where state = 'waiting' and due_at <= ${app.clock.now()} limit 1`
    if (left === undefined) return
  }
  assert.fail('something was still waiting after 30 s')
}

suite('webhooks with Svix', () => {
  test('with Svix, `initialize` finds or makes the organization’s application; repeats raise `retryCount`', async () => {
    await using svix = await startSvix()
    await using app = await start(svix.url)
    const first = (await app.as('owner').post(`${base}/initialize`)).body
    assert.deepEqual(
      [first.webhookProviderApplicationId, first.svixApplicationId, first.lastError, first.retryCount],
      ['app_1', 'app_1', null, 0],
    )
    const { method, path, query, body } = svix.calls[0] ?? assert.fail()
    assert.deepEqual([method, path, query], ['POST', '/api/v1/app', '?get_if_exists=true'])
    assert.deepEqual([body?.['name'], body?.['uid']], ['ours', ours])
    const second = (await app.as('owner').post(`${base}/initialize`)).body
    assert.deepEqual([second.svixApplicationId, second.retryCount], ['app_1', 1])
  })

  test('an organization’s failed initialization in Svix is counted, and retried at growing intervals', async () => {
    await using svix = await startSvix()
    svix.state.failWith = 500
    await using app = await start(svix.url)
    const failed = await app.as('owner').post(`${base}/initialize`)
    assert.deepEqual(
      [failed.status, failed.body.svixApplicationId, failed.body.lastError, failed.body.retryCount],
      [200, null, 'The webhook provider answered 500.', 1],
    )
    assert.equal((await app.as('owner').post(`${base}/app-portal-access`)).status, 503)
    const status = async () => (await app.as('owner').get(`${base}/initialization-status`)).body
    assert.equal((await status()).retryCount, 2)
    await app.sweep()
    assert.equal((await status()).retryCount, 2)
    app.clock.advance({ minutes: 1 })
    await app.sweep()
    assert.equal((await status()).retryCount, 3)
    svix.state.failWith = undefined
    app.clock.advance({ hours: 1 })
    await app.sweep()
    const { svixApplicationId, lastError, retryCount } = await status()
    assert.deepEqual([svixApplicationId, lastError, retryCount], ['app_1', null, 4])
  })

  test('with Svix, a wrong token and an unreachable server give different errors, and none shows the token', async () => {
    await using svix = await startSvix()
    await using wrong = await start(svix.url, 'wrong')
    const refused = await wrong.as('owner').post(`${base}/initialize`)
    assert.equal(refused.body.lastError, 'The webhook provider answered 401.')
    await using lost = await start('http://127.0.0.1:1')
    const unreachable = await lost.as('owner').post(`${base}/initialize`)
    assert.equal(unreachable.body.lastError, 'The webhook provider could not be reached.')
  })

  test('with Svix, the portal link is the one that Svix returns', async () => {
    await using svix = await startSvix()
    await using app = await start(svix.url)
    const { status, body } = await app.as('owner').post(`${base}/app-portal-access`)
    assert.deepEqual([status, body], [200, { token: 'appsk_x', url: 'https://app.svix.test/login#key=x' }])
    assert.equal(svix.calls.at(-1)?.path, '/api/v1/auth/app-portal-access/app_1')
    svix.state.failWith = 500
    assert.equal((await app.as('owner').post(`${base}/app-portal-access`)).status, 503)
  })

  test('with Svix, each event has an id of its own, so Svix ignores an event that control sends twice', async () => {
    await using svix = await startSvix()
    svix.state.endpoints = 1
    await using app = await start(svix.url)
    await app.as('owner').post(`${base}/initialize`)
    await happen(app, 'one')
    await emptied(app)
    const [[eventId, message] = assert.fail()] = svix.messages
    assert.match(eventId, /^msg_[0-9a-f]{32}$/)
    const { timestamp, createdAt, ...payload } = message['payload'] as Record<string, unknown>
    assert.deepEqual([message['eventType'], timestamp], ['snapshot.created', createdAt])
    assert.deepEqual(payload, {
      event: 'snapshot.created',
      id: 'one',
      organizationId: ours,
      name: 'one',
      state: 'pending',
    })
    // The test simulates that the message had reached Svix and the reply had been lost. Svix refuses the repeated message with 409.
    await app.database.sql`update webhook_deliveries set state = 'waiting', due_at = ${app.clock.now()}`
    await emptied(app)
    assert.equal(svix.messages.size, 1)
    const [delivery] = await app.database.sql`select state from webhook_deliveries`
    assert.equal(delivery?.['state'], 'delivered')
  })

  test('with Svix, messages that Svix did not accept are sent later, in order', async () => {
    await using svix = await startSvix()
    svix.state.endpoints = 1
    await using app = await start(svix.url)
    await app.as('owner').post(`${base}/initialize`)
    svix.state.failWith = 503
    for (const state of ['pending', 'pulling', 'active']) await happen(app, 'one', state)
    await emptied(app)
    assert.equal(svix.messages.size, 0)
    assert.equal(
      (await app.as('owner').get(`${base}/initialization-status`)).body.lastError,
      'The webhook provider answered 503.',
    )
    svix.state.failWith = undefined
    app.clock.advance({ minutes: 1 })
    await emptied(app)
    assert.deepEqual(
      [...svix.messages.values()].map(({ payload }) => (payload as Record<string, unknown>)['newState'] ?? 'created'),
      ['created', 'pulling', 'active'],
    )
  })

  test('control sends Svix nothing while Svix has no endpoint; `refresh-endpoints` finds a new one at once', async () => {
    await using svix = await startSvix()
    await using app = await start(svix.url)
    await app.as('owner').post(`${base}/initialize`)
    await happen(app, 'one')
    await emptied(app)
    await happen(app, 'two')
    await emptied(app)
    assert.equal(svix.calls.filter(({ path }) => path.endsWith('/endpoint')).length, 1)
    svix.state.endpoints = 1
    assert.equal((await app.as('owner').post(`${base}/refresh-endpoints`)).status, 200)
    await happen(app, 'three')
    await emptied(app)
    assert.deepEqual(
      [...svix.messages.values()].map(({ payload }) => (payload as Record<string, unknown>)['id']),
      ['three'],
    )
    // Even without a refresh, control asks Svix again after a minute. Control then knows that Svix has no endpoint any
    // more.
    svix.state.endpoints = 0
    app.clock.advance({ minutes: 1 })
    await happen(app, 'four')
    await emptied(app)
    assert.equal(svix.messages.size, 1)
  })

  test('with Svix, no message is stored or sent for an organization that never initialized webhooks', async () => {
    await using svix = await startSvix()
    await using app = await start(svix.url)
    await happen(app, 'one')
    await emptied(app)
    const [row] = await app.database.sql`select count(*) from webhook_messages`
    assert.deepEqual([row?.['count'], svix.calls.length], [0, 0])
  })
})
