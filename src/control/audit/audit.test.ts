import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControlProcess } from '#test/control/control-process.ts'
import { type Client, type Reply, startControl, type TestControl } from '#test/control/harness.ts'
import { keys, organizations, userId } from '#test/control/people.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'
import { permissions } from '../auth/permissions.ts'
import { hashKey } from '../auth/secret.ts'
import { openDatabase } from '../storage/database.ts'
import { refusalsPerMinute } from './refusal-budget.ts'
import type { AuditEntry } from './schemas.ts'
import { sweepAudit } from './sweep.ts'
import { readFirst, tellThemselves } from './trail.ts'

const { ours, theirs } = organizations

const read = async (client: Client, query: Record<string, string> = {}, path = `/audit/organizations/${ours}`) => {
  const reply = await client.get(`${path}?${new URLSearchParams(query)}`)
  assert.equal(reply.status, 200, reply.text)
  return reply.body as { items: AuditEntry[]; total: number; totalPages: number; nextToken?: string }
}

/** Returns the call and the status of each audit row, newest first. */
const told = ({ items }: { items: AuditEntry[] }) => items.map(({ call, statusCode }) => [call, statusCode])

const rows = async ({ database }: TestControl) =>
  await database.sql<{ action: string; status: number | null; text: string }[]>`
    select action, status, to_jsonb(audit_log)::text as text from audit_log order by id`

/** Waits until the audit row of each finished write is completed or removed. Control does that after it has sent the reply. */
const settledRows = async (app: TestControl) => {
  for (const end = Date.now() + 20_000; Date.now() < end; ) {
    const found = await rows(app)
    if (found.every(({ status }) => status !== null)) return found
  }
  assert.fail('a row was still pending')
}

const untilPending = async (app: TestControl) => {
  for (const end = Date.now() + 20_000; Date.now() < end; ) {
    const found = (await rows(app)).find(({ status }) => status === null)
    if (found !== undefined) return found
  }
  assert.fail('no row was there before the write was done')
}

suite('the audit row of a write', () => {
  test('an audit row has the actor, key, address, organization, action, targets and outcome of a call', async () => {
    await using app = await startControl()
    const headers = { 'user-agent': 'curl/8' }
    const reply = await app.as('owner').post('/api-keys', { name: 'robot', permissions: [] }, { headers })
    assert.equal(reply.status, 201)
    const [entry] = (await read(app.as('owner'))).items
    const { id, requestId, ...rest } = entry!
    assert.match(id, /^\d+$/)
    assert.equal(requestId, reply.headers['x-request-id'])
    assert.deepEqual(rest, {
      createdAt: app.clock.now().toISOString(),
      organizationId: ours,
      actorId: userId('owner'),
      actorEmail: 'owner@example.com',
      credential: 'api_key',
      keyName: 'owner',
      ipAddress: '127.0.0.1',
      userAgent: 'curl/8',
      call: 'POST /api-keys',
      action: 'create',
      targetType: 'api_key',
      targetId: 'robot',
      targets: ['robot'],
      params: {},
      statusCode: 201,
    })
  })

  test('an audit row has the client address that the outermost trusted proxy wrote to X-Forwarded-For', async () => {
    const addressOf = async (trustedProxies: number) => {
      await using app = await startControl({ settings: { trustedProxies } })
      const headers = { 'x-forwarded-for': '198.51.100.7, 203.0.113.9' }
      await app.as('owner').post('/api-keys', { name: 'robot', permissions: [] }, { headers })
      return (await read(app.as('owner'))).items[0]?.ipAddress
    }
    assert.deepEqual(
      [await addressOf(0), await addressOf(1), await addressOf(2)],
      ['127.0.0.1', '203.0.113.9', '198.51.100.7'],
    )
  })

  test('an audit row has the credential `jwt` and no key name if the caller signed in without an API key', async () => {
    await using app = await startControl()
    await app.asUser('owner').post('/api-keys', { name: 'robot', permissions: [] })
    const [entry] = (await read(app.as('owner'))).items
    assert.deepEqual([entry?.actorId, entry?.credential, entry?.keyName], [userId('owner'), 'jwt', undefined])
  })

  test('an audit row contains no secret, no request body and no reply body', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    const made = await app.as('owner').post('/api-keys', { name: 'robot', permissions: ['write:sandboxes'] })
    const robot = app.with(made.body.value)
    const box = await robot.post('/sandbox', { name: 'box', env: { PASSWORD: 'hunter2' } })
    assert.equal(box.status, 200)
    const signed = await robot.get('/sandbox/box/ports/80/signed-preview-url')
    await robot.post(`/sandbox/box/ports/80/signed-preview-url/${signed.body.token}/expire`)
    const pushed = await robot.get('/object-storage/push-access')
    const written = await rows(app)
    assert.deepEqual(
      written.slice(1).map(({ action }) => action.replace('/sandbox/{sandboxIdOrName}', '')),
      [
        'POST /sandbox',
        // The first of these calls leaves an audit row although its method is GET: a signed preview URL is a credential.
        'GET /ports/{port}/signed-preview-url',
        'POST /ports/{port}/signed-preview-url/{token}/expire',
        // This call leaves an audit row although its method is GET: its answer has a credential for uploads to the
        // object store.
        'GET /object-storage/push-access',
      ],
    )
    for (const { text } of written) {
      for (const secret of [
        made.body.value.slice(4),
        hashKey(made.body.value),
        'hunter2',
        signed.body.token,
        pushed.body.secret,
      ]) {
        assert.ok(!text.includes(secret), text)
      }
    }
  })

  test('a filter by a sandbox’s name or by its id finds the audit rows about the sandbox', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    const { id } = (await app.as('member').post('/sandbox', { name: 'box' })).body
    await app.as('member').post('/sandbox/box/autostop/7')
    const [setting] = (await read(app.as('owner'), { 'targetId[eq]': 'box' })).items
    assert.deepEqual([setting?.params, setting?.targets], [{ sandboxIdOrName: 'box', interval: '7' }, ['box', id]])
    assert.equal((await read(app.as('owner'), { 'targetId[eq]': id })).items.length, 2)
  })

  test('a refused call leaves an audit row with its error code, whatever check refused it', async () => {
    await using app = await startControl()
    await app.as('viewer').post('/api-keys', { name: 'x', permissions: [] })
    await app.as('owner').post('/api-keys', { name: 7 })
    await app.as('owner').send('POST', '/api-keys', '{')
    await app.as('owner').delete('/api-keys/nothing')
    await app.as('owner').delete('/api-keys/%00')
    const { items } = await read(app.as('owner'))
    assert.deepEqual(
      items.map(({ actorId, statusCode, code, targets }) => [actorId, statusCode, code, targets]).reverse(),
      [
        [userId('viewer'), 403, 'FORBIDDEN', []],
        [userId('owner'), 400, 'BAD_REQUEST', []],
        [userId('owner'), 400, 'INVALID_REQUEST_BODY', []],
        [userId('owner'), 404, 'NOT_FOUND', ['nothing']],
        [userId('owner'), 400, 'BAD_REQUEST', ['\uFFFD']],
      ],
    )
  })

  test('reads, unauthenticated calls, calls of gates and runners, and activity signals leave no audit row', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    const { id } = (await app.as('member').post('/sandbox', { name: 'box' })).body
    await app.as('owner').get('/api-keys')
    await app.as('nobody').post('/api-keys', { name: 'x', permissions: [] })
    await app.with('nonsense').delete('/api-keys/owner')
    await app.as('member').post('/sandbox/box/last-activity', {})
    await app.as('runner').put(`/sandbox/${id}/state`, { state: 'started', generation: 0 })
    await app.as('proxy').post('/proxy/access', { sandboxIdOrName: id, credentials: [], countsAsActivity: false })
    assert.deepEqual(
      (await rows(app)).map(({ action }) => action),
      ['POST /sandbox'],
    )
  })

  test('refused calls get a limited number of audit rows per user and minute; each successful write gets one', async () => {
    await using app = await startControl()
    for (let n = 0; n < refusalsPerMinute + 20; n += 1) await app.as('owner').delete(`/api-keys/none-${n}`)
    await app.as('viewer').delete('/api-keys/none')
    assert.equal((await settledRows(app)).length, refusalsPerMinute + 1)
    await app.as('owner').post('/api-keys', { name: 'robot', permissions: [] })
    app.clock.advance({ minutes: 1 })
    await app.as('owner').delete('/api-keys/none')
    assert.equal((await settledRows(app)).length, refusalsPerMinute + 3)
  })

  test('a call to another organization’s sandbox leaves its audit row only in the caller’s organization', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    await app.as('member').post('/sandbox', { name: 'box' })
    assert.equal((await app.as('stranger').delete('/sandbox/box')).status, 404)
    assert.equal((await read(app.as('owner'))).items.length, 1)
    const { items } = await read(app.as('stranger'), {}, `/audit/organizations/${theirs}`)
    assert.deepEqual(told({ items }), [['DELETE /sandbox/{sandboxIdOrName}', 404]])
  })
})

/** Locks an API key, so that it cannot be deleted until the returned function is called. */
const holdKey = async ({ url }: TestControl, name: string) => {
  const database = openDatabase(url, { max: 1 })
  const gate = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  const holding = database.transaction(async (sql) => {
    await sql`select from api_keys where name = ${name} for update`
    held.resolve()
    await gate.promise
  })
  await Promise.race([held.promise, holding])
  return {
    [Symbol.asyncDispose]: async () => {
      gate.resolve()
      await holding
      await database.close()
    },
  }
}

suite('the audit row that precedes a write', () => {
  test('an audit row is visible while its call runs, and contains the reply’s status when the reply arrives', async () => {
    await using app = await startControl()
    let deleting: Promise<Reply>
    {
      await using _held = await holdKey(app, 'viewer')
      deleting = app.as('owner').delete(`/api-keys/${userId('viewer')}/viewer`)
      assert.equal((await untilPending(app)).action, 'DELETE /api-keys/{userId}/{name}')
      const [entry] = (await read(app.as('owner'))).items
      assert.deepEqual([entry?.targets, entry?.statusCode], [[userId('viewer'), 'viewer'], undefined])
    }
    assert.equal((await deleting).status, 204)
    assert.deepEqual(told(await read(app.as('owner'))), [['DELETE /api-keys/{userId}/{name}', 204]])
  })

  test('if the audit row of a call cannot be written, the call fails and changes nothing', async () => {
    await using app = await startControl()
    await app.database.sql`alter table audit_log rename to elsewhere`
    const reply = await app.as('owner').post('/api-keys', { name: 'robot', permissions: [] })
    assert.equal(reply.status, 500)
    assert.equal((await app.as('owner').get('/api-keys/robot')).status, 404)
  })

  test('even a call that reads before it writes changes nothing if its audit row cannot be written', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using _runner = await connectRunner(app)
    const { id } = (await app.as('owner').post('/sandbox', { name: 'box' })).body
    await app.database.sql`alter table audit_log rename to elsewhere`
    const calls: Record<string, object> = {
      'POST /sandbox': {},
      'POST /sandbox/:sandboxIdOrName/fork': {},
      'POST /sandbox/:sandboxIdOrName/pause': {},
      'POST /sandbox/:sandboxIdOrName/start': {},
    }
    assert.deepEqual(Object.keys(calls), [...tellThemselves, ...readFirst])
    for (const [name, body] of Object.entries(calls)) {
      if (name.endsWith('/start'))
        await app.database.sql`update sandboxes set state = 'stopped', desired_state = 'stopped'`
      const [before] = await app.database.sql`select json_agg(sandboxes)::text as all from sandboxes`
      const path = name.split(' ')[1]!.replace(':sandboxIdOrName', id)
      assert.equal((await app.as('owner').post(path, body)).status, 500, name)
      assert.deepEqual(
        (await app.database.sql`select json_agg(sandboxes)::text as all from sandboxes`)[0],
        before,
        name,
      )
    }
  })

  test('a create or fork that is rolled back has exactly one audit row, with the status of its reply', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using _runner = await connectRunner(app)
    const { id } = (await app.as('owner').post('/sandbox', { name: 'box' })).body
    const taken = [await app.as('owner').post('/sandbox', { name: 'box' })]
    taken.push(await app.as('owner').post(`/sandbox/${id}/fork`, { name: 'box' }))
    taken.push(await app.as('owner').post('/sandbox', { snapshot: 'nothing' }))
    assert.deepEqual(
      taken.map(({ status }) => status),
      [409, 409, 400],
    )
    const written = (await rows(app)).map(({ action, status }) => [action, status])
    assert.deepEqual(written, [
      ['POST /sandbox', 200],
      ['POST /sandbox', 409],
      ['POST /sandbox/{sandboxIdOrName}/fork', 409],
      ['POST /sandbox', 400],
    ])
    assert.deepEqual((await read(app.as('owner'))).items[1]?.targets, [id])
  })

  test('the audit row of a create is visible as soon as its sandbox exists, before the reply is sent', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using runner = await connectRunner(app)
    runner.behave(() => ({ type: 'silent' }))
    const creating = app.as('owner').post('/sandbox', { name: 'box' })
    const assignment = await runner.untilAsked(({ name }) => name === 'box')
    assert.deepEqual(told(await read(app.as('owner'))), [['POST /sandbox', undefined]])
    runner.perform(assignment)
    assert.equal((await creating).status, 200)
    assert.deepEqual(told(await read(app.as('owner'))), [['POST /sandbox', 200]])
  })

  test('an audit row survives if control is killed while the audited call runs', { timeout: 60_000 }, async () => {
    await using app = await startControl()
    await using control = await startControlProcess(app.url)
    {
      await using _held = await holdKey(app, 'viewer')
      const path = `/api-keys/${userId('viewer')}/viewer`
      const asking = fetch(control.base + path, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${keys.owner}` },
      })
      const broken = assert.rejects(asking)
      await untilPending(app)
      await control.kill()
      await broken
    }
    const [entry] = (await read(app.as('owner'))).items
    assert.deepEqual(
      [entry?.actorId, entry?.call, entry?.statusCode],
      [userId('owner'), 'DELETE /api-keys/{userId}/{name}', undefined],
    )
  })
})

suite('GET /audit/organizations/{organizationId}', () => {
  /** Creates five API keys, one per minute, so that there are five audit rows with different times. */
  const writeFive = async (app: TestControl) => {
    for (let n = 1; n <= 5; n += 1) {
      await app.as('owner').post('/api-keys', { name: `key-${n}`, permissions: [] })
      app.clock.advance({ minutes: 1 })
    }
  }

  test('GET /audit/organizations/{organizationId} lists each row once over all pages, even while rows are added', async () => {
    await using app = await startControl()
    await writeFive(app)
    const seen: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await read(app.as('owner'), { limit: '2', ...(cursor === '' ? {} : { nextToken: cursor }) })
      seen.push(...page.items.flatMap(({ targets }) => targets))
      await app.as('owner').post('/api-keys', { name: `later-${seen.length}`, permissions: [] })
      cursor = page.nextToken ?? null
    }
    assert.deepEqual(seen, ['key-5', 'key-4', 'key-3', 'key-2', 'key-1'])
  })

  test('GET /audit/organizations/{organizationId} lists every row, even if several rows have the same time', async () => {
    await using app = await startControl()
    for (let n = 1; n <= 4; n += 1) await app.as('owner').post('/api-keys', { name: `key-${n}`, permissions: [] })
    const first = await read(app.as('owner'), { limit: '3' })
    const second = await read(app.as('owner'), { limit: '3', nextToken: first.nextToken! })
    assert.deepEqual(
      [...first.items, ...second.items].map(({ targets }) => targets[0]),
      ['key-4', 'key-3', 'key-2', 'key-1'],
    )
    assert.equal(second.nextToken, undefined)
  })

  test('GET /audit/organizations/{organizationId} filters by time, actor, action, status and target, alone or combined', async () => {
    await using app = await startControl()
    const start = app.clock.now().getTime()
    await writeFive(app)
    await app.as('member').delete('/api-keys/nothing')
    const minute = (n: number) => new Date(start + n * 60_000).toISOString()
    const targets = async (query: Record<string, string>) =>
      (await read(app.as('owner'), query)).items.map(({ targets: [target] }) => target)
    assert.deepEqual(await targets({ from: minute(1), to: minute(2) }), ['key-3', 'key-2'])
    assert.deepEqual(await targets({ 'createdAt[gt]': minute(1), 'createdAt[lt]': minute(3) }), ['key-3'])
    assert.deepEqual(await targets({ 'actorId[eq]': userId('member') }), ['nothing'])
    assert.deepEqual(await targets({ 'actorEmail[not]': 'owner@example.com' }), ['nothing'])
    assert.deepEqual(await targets({ 'action[eq]': 'delete' }), ['nothing'])
    assert.deepEqual(await targets({ 'action[notIn]': 'create,update' }), ['nothing'])
    assert.deepEqual(await targets({ 'statusCode[gte]': '400' }), ['nothing'])
    assert.deepEqual(await targets({ 'statusCode[in]': '403,409' }), ['nothing'])
    assert.deepEqual(await targets({ 'targetType[not]': 'api_key' }), [])
    assert.deepEqual(await targets({ 'targetId[in]': 'key-4,key-2' }), ['key-4', 'key-2'])
    const all = {
      ...{ from: minute(0), to: minute(9), 'actorId[eq]': userId('owner') },
      ...{ 'targetType[eq]': 'api_key', 'action[in]': 'create', 'targetId[eq]': 'key-1' },
    }
    assert.deepEqual(await targets(all), ['key-1'])
    assert.deepEqual(await targets({ ...all, 'actorId[eq]': userId('member') }), [])
  })

  test('GET /audit/organizations/{organizationId} returns numbered pages and a total; unknown calls have the action `update` and the type `other`', async () => {
    await using app = await startControl()
    await writeFive(app)
    assert.equal((await read(app.as('owner'))).total, 5)
    await app.database.sql`update audit_log set action = 'POST /gone' where targets[1] = 'key-5'`
    const second = await read(app.as('owner'), { limit: '2', page: '2' })
    assert.deepEqual([second.total, second.totalPages], [5, 3])
    assert.deepEqual(
      second.items.map(({ targetId }) => targetId),
      ['key-3', 'key-2'],
    )
    assert.deepEqual((await read(app.as('owner'), { limit: '2', page: '9' })).items, [])
    const other = await read(app.as('owner'), { 'targetType[eq]': 'other', 'action[eq]': 'update' })
    assert.deepEqual(
      other.items.map(({ targetId, call }) => [targetId, call]),
      [['key-5', 'POST /gone']],
    )
    assert.equal((await read(app.as('owner'), { 'action[not]': 'update' })).total, 4)
  })

  test('GET /audit/organizations/{organizationId} answers 200 only to keys with read:audit_logs, else 403', async () => {
    await using app = await startControl()
    const path = `/audit/organizations/${ours}`
    const { body } = await app.as('owner').post('/api-keys', { name: 'auditor', permissions: ['read:audit_logs'] })
    assert.equal((await app.with(body.value).get(path)).status, 200)
    const all = Object.keys(permissions).filter((permission) => permission !== 'read:audit_logs')
    const other = await app.as('owner').post('/api-keys', { name: 'no auditor', permissions: all })
    for (const client of [app.as('member'), app.as('viewer'), app.with(other.body.value)]) {
      assert.equal((await client.get(path)).status, 403)
    }
  })

  test('GET /audit/organizations/{organizationId} answers strangers 404, whether or not the organization exists', async () => {
    await using app = await startControl()
    for (const id of [ours, 'no-such-organization']) {
      const reply = await app.as('stranger').get(`/audit/organizations/${id}`)
      assert.deepEqual(
        [reply.status, reply.body.message],
        [404, 'What you asked for does not exist, or you have no access to it (not found).'],
      )
    }
  })

  test('GET /audit/organizations/{organizationId} answers 400 for a forged page token, another list’s page token, a bad limit or a bad time', async () => {
    await using app = await startControl()
    const listing = Buffer.from(JSON.stringify(['name', 'desc', 'a', 'b'])).toString('base64url')
    const forged = Buffer.from(JSON.stringify(['audit', 'desc', '2026-01-01T00:00:00.000Z', '1; drop'])).toString(
      'base64url',
    )
    const wrong = [
      `nextToken=${listing}`,
      `nextToken=${forged}`,
      'nextToken=x',
      'limit=0',
      'limit=201',
      'from=yesterday',
      'to=%2B275760-09-13T00:00:00Z',
      `actorId[eq]=${'x'.repeat(256)}`,
      'targetId[in]=%00',
      'page=0',
      'statusCode[gt]=many',
    ]
    for (const query of wrong) {
      const reply = await app.as('owner').get(`/audit/organizations/${ours}?${query}`)
      assert.deepEqual([reply.status, reply.body.code], [400, 'BAD_REQUEST'], query)
    }
  })
})

suite('GET /audit', () => {
  test('GET /audit returns the rows of all organizations, or of the requested organization, to an operator', async () => {
    await using app = await startControl()
    for (const who of ['owner', 'stranger'] as const) {
      await app.as(who).post('/api-keys', { name: `of-${who}`, permissions: [] })
    }
    const targets = async (query: Record<string, string> = {}) =>
      (await read(app.as('admin'), query, '/audit')).items.map(({ targets: [target] }) => target)
    assert.deepEqual(await targets(), ['of-stranger', 'of-owner'])
    assert.deepEqual(await targets({ organizationId: ours }), ['of-owner'])
  })

  test('GET /audit answers 403 to users who are not operators, and 401 without a credential', async () => {
    await using app = await startControl()
    assert.equal((await app.as('owner').get('/audit')).status, 403)
    assert.equal((await app.as('nobody').get('/audit')).status, 401)
  })
})

suite('old audit rows', () => {
  test('audit rows are deleted when they are older than the operator’s setting allows', async () => {
    await using app = await startControl({ settings: { auditDays: 2 } })
    await app.as('owner').post('/api-keys', { name: 'old', permissions: [] })
    app.clock.advance({ hours: 24 })
    await app.as('owner').post('/api-keys', { name: 'new', permissions: [] })
    app.clock.advance({ hours: 25 })
    await app.sweep()
    assert.deepEqual(
      (await read(app.as('owner'))).items.map(({ targets }) => targets[0]),
      ['new'],
    )
  })

  test('if there are too many audit rows, the organization with the most rows loses its oldest rows', async () => {
    await using app = await startControl()
    const { sql } = app.database
    await sql`
      insert into audit_log (at, organization_id, actor_id, actor_email, credential, client_address, user_agent,
                             request_id, action, params, targets, status)
      select ${app.clock.now()}::timestamptz - n * interval '1 second', case when n % 10 = 0 then ${ours} else ${theirs} end,
             'a', 'a', 'api_key', '', '', '', 'POST /x', '{}', '{}', 200
      from generate_series(1, 20000) n`
    await sql`analyze audit_log`
    const count = async (organizationId: string) =>
      (await sql`select from audit_log where organization_id = ${organizationId}`).count
    // The sweep uses an estimate and a sample of the rows. If the sample is empty, a later sweep deletes the rows.
    for (let sweep = 0; sweep < 10 && (await count(theirs)) === 18_000; sweep++) await sweepAudit(app.parts, 15_000)
    assert.deepEqual([await count(ours), await count(theirs)], [2_000, 13_000])
  })
})
