// Tests that keys and credentials which are made with an API key become invalid with that API key, or earlier.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations, userId } from '#test/control/people.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'
import { allPermissions } from '../auth/permissions.ts'

const inMinutes = (app: TestControl, minutes: number) =>
  new Date(app.clock.now().getTime() + minutes * 60_000).toISOString()

/**
 * Makes an API key for the user `owner`. `by`: the API key that authorizes the call. Default: the owner's key in the test database.
 */
const make = async (app: TestControl, name: string, { by, expiresAt }: { by?: string; expiresAt?: string } = {}) => {
  const as = by === undefined ? app.as('owner') : app.with(by)
  const { status, body } = await as.post('/api-keys', { name, permissions: allPermissions, expiresAt })
  assert.equal(status, 201, body.message)
  return body as { value: string; expiresAt: string | null }
}

const statusOf = async (app: TestControl, key: string) => (await app.with(key).get('/users/me')).status

suite('an API key that was made with another API key', () => {
  test('an API key made with another API key expires together with that key, if no expiry is given', async () => {
    await using app = await startControl()
    const maker = await make(app, 'maker', { expiresAt: inMinutes(app, 60) })
    const child = await make(app, 'child', { by: maker.value })
    const grandchild = await make(app, 'grandchild', { by: child.value })
    assert.deepEqual([child.expiresAt, grandchild.expiresAt], [maker.expiresAt, maker.expiresAt])
    assert.equal(await statusOf(app, grandchild.value), 200)
    app.clock.advance({ seconds: 3600 })
    assert.equal(await statusOf(app, grandchild.value), 401)
  })

  test('an API key may make a key that expires before itself, but gets 400 for a key that expires later', async () => {
    await using app = await startControl()
    const maker = await make(app, 'maker', { expiresAt: inMinutes(app, 60) })
    const earlier = inMinutes(app, 59)
    assert.equal((await make(app, 'earlier', { by: maker.value, expiresAt: earlier })).expiresAt, earlier)
    const later = { name: 'later', permissions: [], expiresAt: inMinutes(app, 61) }
    const { status, body } = await app.with(maker.value).post('/api-keys', later)
    assert.deepEqual(
      [status, body.message],
      [400, `expiresAt must not be later than ${maker.expiresAt}, when the key that makes this one ends`],
    )
  })

  test('if an API key is deleted, keys made with it, directly or through other keys, are invalid immediately', async () => {
    await using app = await startControl()
    const maker = await make(app, 'maker')
    const child = await make(app, 'child', { by: maker.value })
    const grandchild = await make(app, 'grandchild', { by: child.value })
    const other = await make(app, 'other')
    const all = [maker, child, grandchild, other].map(({ value }) => value)
    const statuses = () => Promise.all(all.map((key) => statusOf(app, key)))
    assert.deepEqual(await statuses(), [200, 200, 200, 200])
    assert.equal((await app.with(other.value).delete('/api-keys/maker')).status, 204)
    assert.deepEqual(await statuses(), [401, 401, 401, 200])
  })

  test('a deleted API key cannot make another key, even if a cache still has the deleted key as valid', async () => {
    await using app = await startControl()
    const maker = await make(app, 'maker')
    const { sql } = app.database
    // After this call, control caches for up to a second that the key `maker` is valid.
    assert.equal(await statusOf(app, maker.value), 200)
    await sql`delete from api_keys where name = 'maker'`
    const { status } = await app.with(maker.value).post('/api-keys', { name: 'late', permissions: [] })
    assert.equal(status, 401)
    assert.deepEqual([...(await sql`select name from api_keys where name = 'late'`)], [])
  })
})

test('a deleted API key, even if it is cached, gets no webhook portal link and no signed preview URL', async () => {
  await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
  await using _runner = await connectRunner(app)
  const { id } = (await app.as('owner').post('/sandbox', { name: 'box' })).body
  const { value } = await make(app, 'maker')
  const portal = `/webhooks/organizations/${organizations.ours}/app-portal-access`
  assert.equal((await app.with(value).post(portal)).status, 200)
  await app.database.sql`delete from api_keys where name = 'maker'`
  const replies = await Promise.all([
    app.with(value).post(portal),
    app.with(value).get(`/sandbox/${id}/ports/3000/signed-preview-url`),
  ])
  assert.deepEqual(
    replies.map(({ status }) => status),
    [401, 401],
  )
})

suite('500 API keys, each made by the previous one', () => {
  test('deleting the first of 500 API keys, each made by the previous one, deletes all of them', async () => {
    await using app = await startControl()
    const first = await make(app, 'head')
    const { sql } = app.database
    await sql`
      insert into api_keys (organization_id, user_id, name, hash, masked_value, permissions, maker_hash)
      select organization_id, user_id, 'link-' || n, encode(sha256(('link-' || n)::bytea), 'hex'), masked_value, '{}',
        case when n = 1 then hash else encode(sha256(('link-' || n - 1)::bytea), 'hex') end
      from api_keys, generate_series(1, 498) n where name = 'head'`
    assert.equal(await statusOf(app, 'link-498'), 200)
    assert.equal((await app.with(first.value).delete('/api-keys/head')).status, 204)
    assert.equal(await statusOf(app, 'link-498'), 401)
    assert.deepEqual([...(await sql`select name from api_keys where name like 'link-%'`)], [])
  })
})

suite('credentials that end with the API key that requested them', () => {
  type End = [string, (app: TestControl) => Promise<unknown>]
  const ends: End[] = [
    ['it is deleted', (app) => app.as('owner').delete('/api-keys/maker')],
    ['it expires', async (app) => app.clock.advance({ seconds: 300 })],
  ]
  for (const [how, end] of ends) {
    test(`a webhook portal link and its session become invalid together with their API key: ${how}`, async () => {
      await using app = await startControl()
      const { value } = await make(app, 'maker', { expiresAt: inMinutes(app, 5) })
      const openLink = async () =>
        (await app.with(value).post(`/webhooks/organizations/${organizations.ours}/app-portal-access`)).body.token
      const visit = (token: string) => app.as('nobody').get(`/webhooks/portal?token=${token}`)
      const cookie = String((await visit(await openLink())).headers['set-cookie']).split(';')[0]!
      const statusInside = async () => (await app.as('nobody').get('/webhooks/portal', { headers: { cookie } })).status
      const unused = await openLink()
      assert.equal(await statusInside(), 200)
      await end(app)
      assert.deepEqual([(await visit(unused)).status, await statusInside()], [401, 401])
    })

    test(`a signed preview URL becomes invalid together with the API key that requested it: ${how}`, async () => {
      await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
      await using _runner = await connectRunner(app)
      const { value } = await make(app, 'maker', { expiresAt: inMinutes(app, 5) })
      const { id } = (await app.as('owner').post('/sandbox', { name: 'box' })).body
      const sign = async (key: string) =>
        (await app.with(key).get(`/sandbox/${id}/ports/3000/signed-preview-url?expiresInSeconds=3600`)).body.token
      const isLive = async (token: string) => {
        const [row] = await app.database.sql`
          select 1 from signed_previews where token_hash = encode(sha256(${token}::bytea), 'hex')
          and expires_at > ${app.clock.now()}`
        return row !== undefined
      }
      const other = await make(app, 'other')
      const [ofMaker, ofOther] = [await sign(value), await sign(other.value)]
      assert.deepEqual([await isLive(ofMaker), await isLive(ofOther)], [true, true])
      await end(app)
      assert.deepEqual([await isLive(ofMaker), await isLive(ofOther)], [false, true])
    })

    test(`an SSH token made with an API key becomes invalid together with that key: ${how}`, async () => {
      await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
      await using _runner = await connectRunner(app)
      const { value } = await make(app, 'maker', { expiresAt: inMinutes(app, 5) })
      const other = await make(app, 'other')
      const { id } = (await app.as('owner').post('/sandbox', { name: 'box' })).body
      const open = async (key: string) => (await app.with(key).post(`/sandbox/${id}/ssh-access`)).body.token
      const isValid = async (token: string) =>
        (await app.as('ssh-gateway').get(`/sandbox/ssh-access/validate?token=${token}`)).body.valid
      const [ofMaker, ofOther] = [await open(value), await open(other.value)]
      assert.deepEqual([await isValid(ofMaker), await isValid(ofOther)], [true, true])
      await end(app)
      assert.deepEqual([await isValid(ofMaker), await isValid(ofOther)], [false, true])
    })

    test(`a preview token becomes invalid, for ports and toolbox, with the API key that requested it: ${how}`, async () => {
      await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
      await using _runner = await connectRunner(app)
      const { value } = await make(app, 'maker', { expiresAt: inMinutes(app, 5) })
      const other = await make(app, 'other')
      const { id } = (await app.as('owner').post('/sandbox', { name: 'box' })).body
      const tokenFor = async (key: string) =>
        (await app.with(key).get(`/sandbox/${id}/ports/3000/preview-url`)).body.token
      const [ofMaker, ofOther] = [await tokenFor(value), await tokenFor(other.value)]
      const statuses = (token: string, wasLetIn: boolean) =>
        Promise.all(
          ['preview-header', 'preview-query', 'preview-cookie'].flatMap((kind) =>
            [undefined, 3000, 3001].map(async (port) => {
              const question = { sandboxIdOrName: id, credentials: [{ kind, token }], port, countsAsActivity: false }
              return (await app.as('proxy').post('/proxy/access', { ...question, wasLetIn })).status
            }),
          ),
        )
      const all = (status: number) => Array.from({ length: 9 }, () => status)
      assert.deepEqual([await statuses(ofMaker, false), await statuses(ofOther, false)], [all(200), all(200)])
      await end(app)
      assert.deepEqual([await statuses(ofMaker, false), await statuses(ofMaker, true)], [all(401), all(401)])
      assert.deepEqual(await statuses(ofOther, false), all(200))
    })

    test(`credentials to upload files become invalid together with the API key that requested them: ${how}`, async () => {
      await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
      await using _runner = await connectRunner(app)
      const { value } = await make(app, 'maker', { expiresAt: inMinutes(app, 5) })
      const { accessKey, sessionToken } = (await app.with(value).get('/object-storage/push-access')).body
      const ask = async () => (await app.as('proxy').post('/proxy/object-storage', { accessKey, sessionToken })).status
      assert.equal(await ask(), 200)
      await end(app)
      assert.equal(await ask(), 401)
    })
  }
})

suite('a key that expires cannot give access that lasts longer than the key', () => {
  test('an expiring API key, even an operator’s, gets 403 at each endpoint that gives lasting access', async () => {
    await using app = await startControl()
    const { value } = await make(app, 'maker', { expiresAt: inMinutes(app, 60) })
    const { body } = await app.as('admin').post('/api-keys', {
      name: 'operator',
      permissions: allPermissions,
      expiresAt: inMinutes(app, 60),
    })
    const ids: Record<string, string> = {
      organizationId: organizations.ours,
      userId: userId('member'),
      id: 'any',
      sandboxIdOrName: 'any',
      roleId: 'any',
      invitationId: 'any',
      runnerId: 'any',
    }
    const giving = app.app.routes.filter(({ givesAccess }) => givesAccess)
    for (const { method, path, needs } of giving) {
      const url = path.replace(/:(\w+)/g, (_, name: string) => ids[name] ?? assert.fail(name))
      const reply = await app.with(needs === 'admin' ? body.value : value).send(method, url, '{}')
      assert.deepEqual([reply.status, /lasts longer than/.test(reply.body.message)], [403, true], `${method} ${path}`)
    }
  })

  test('an API key that expires cannot invite a user; an API key that does not expire can', async () => {
    await using app = await startControl()
    const { value } = await make(app, 'lasting')
    const invitations = `/organizations/${organizations.ours}/invitations`
    const invite = (key: string) => app.with(key).post(invitations, { email: 'new@example.test' })
    const { value: expiring } = await make(app, 'expiring', { expiresAt: inMinutes(app, 60) })
    assert.equal((await invite(expiring)).status, 403)
    assert.deepEqual((await app.as('owner').get(invitations)).body, [])
    assert.equal((await invite(value)).status, 201)
  })

  /**
   * Endpoints that return credentials which become invalid with the caller's API key. The tests above try each of these
   * credentials.
   */
  const endsWithTheKey = [
    'POST /api-keys',
    'GET /object-storage/push-access',
    'GET /sandbox/:sandboxIdOrName/ports/:port/preview-url',
    'GET /sandbox/:sandboxIdOrName/ports/:port/signed-preview-url',
    'POST /sandbox/:sandboxIdOrName/ssh-access',
    'POST /webhooks/organizations/:organizationId/app-portal-access',
  ]
  /**
   * Endpoints that return secrets for signing messages to other servers. Such secrets give no access to this server.
   */
  const opensNothing = [
    'POST /webhooks/organizations/:organizationId/endpoints',
    'POST /webhooks/organizations/:organizationId/endpoints/:endpointId/rotate-secret',
  ]
  /** Endpoints whose replies have no credential, although a field's name suggests one, for example a masked value. */
  const holdsNone = [
    'POST /users/mfa/sms/enroll',
    'GET /organizations',
    'POST /organizations',
    'GET /organizations/:organizationId',
    'GET /api-keys',
    'GET /api-keys/current',
    'GET /api-keys/:name',
    'GET /audit',
    'GET /audit/organizations/:organizationId',
    'GET /docker-registry',
    'GET /docker-registry/:id',
    'POST /docker-registry',
    'PATCH /docker-registry/:id',
    'GET /snapshots/:idOrName/build-logs-url',
    'GET /snapshots/:idOrName/build-logs',
    'GET /sandbox/:sandboxIdOrName/build-logs-url',
    'GET /sandbox/:sandboxIdOrName/build-logs',
    'GET /sandbox/:sandboxIdOrName/toolbox-proxy-url',
    'GET /sandbox/:sandboxIdOrName/telemetry/metrics',
    'GET /webhooks/organizations/:organizationId/endpoints',
    'GET /webhooks/organizations/:organizationId/endpoints/:endpointId',
    'PATCH /webhooks/organizations/:organizationId/endpoints/:endpointId',
    'GET /metrics',
  ]

  test('each endpoint whose reply may contain a credential is in one of the three lists of this file', async () => {
    await using app = await startControl()
    type Shape = { type?: string; properties?: Record<string, Shape>; items?: Shape; anyOf?: Shape[] }
    const isCalledSo = (name: string) => /token|secret|password|credential|(?:api|access)Key|^value$|^url$/i.test(name)
    // Whether the name of a field suggests a credential. For a list of objects, only the names of their fields count.
    const isSuspect = (name: string, { items }: Shape) =>
      isCalledSo(name) && !name.endsWith('Id') && items?.properties === undefined
    const mayHoldOne = ({ properties = {}, items, anyOf = [] }: Shape): boolean =>
      Object.entries(properties).some(([name, shape]) => isSuspect(name, shape) || mayHoldOne(shape)) ||
      [...anyOf, ...(items ? [items] : [])].some(mayHoldOne)
    const isForKeys = ({ needs }: { needs: string }) => !['public', 'proxy', 'runner', 'collector'].includes(needs)
    const undecided = app.app.routes
      .filter((row) => isForKeys(row) && !row.givesAccess)
      .filter(({ replies }) =>
        Object.values(replies).some((shape: Shape | null) => shape && (shape.type === 'string' || mayHoldOne(shape))),
      )
      .map(({ method, path }) => `${method} ${path}`)
    assert.deepEqual(undecided.sort(), [...endsWithTheKey, ...opensNothing, ...holdsNone].sort())
  })

  /** Endpoints that give access to nobody, although their paths look like changes of access. */
  const givesNone = [
    'PATCH /runners/:runnerId/scheduling',
    'POST /organizations/:organizationId/identity-providers/test-connection',
    'POST /organizations/:organizationId/invitations/:invitationId/cancel',
    'POST /organizations/:organizationId/leave',
    'POST /organizations/invitations/:invitationId/decline',
    'POST /runners/:runnerId/lost',
  ]

  test('each endpoint that changes who has access is marked as `givesAccess`, or listed as an exception', async () => {
    await using app = await startControl()
    const isOfAccess = ({ path, needs }: { path: string; needs: string }) =>
      needs !== 'runner' &&
      /^\/(?:admin\/users|runners|regions)\b|\/(?:invitations|users\/:userId|leave|roles|identity-providers|pending-sso-links)\b/.test(
        path,
      )
    const silent = app.app.routes
      .filter((row) => isOfAccess(row) && !['GET', 'DELETE'].includes(row.method) && !row.givesAccess)
      .map(({ method, path }) => `${method} ${path}`)
    assert.deepEqual(silent.sort(), givesNone)
  })
})
