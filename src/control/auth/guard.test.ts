import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { keys, organizations, userId } from '#test/control/people.ts'
import { openDatabase } from '../storage/database.ts'
import { hashKey, newKey } from './secret.ts'

const jwt = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1c2VyLW93bmVyIn0.c2ln'

suite('the guard of every endpoint', () => {
  test('an endpoint for users answers 401 without a token, to unknown keys and JWTs, and to gates', async () => {
    await using app = await startControl()
    for (const token of [newKey(), 'x', keys.owner.slice(0, -1), keys.owner.toUpperCase(), keys.proxy, jwt]) {
      const reply = await app.with(token).get('/users/me')
      assert.deepEqual([reply.status, reply.body.code], [401, 'UNAUTHORIZED'], token)
    }
    assert.equal((await app.as('nobody').get('/users/me')).status, 401)
  })

  test('an API key gets 401 from the moment when it expires', async () => {
    await using app = await startControl()
    const expiresAt = new Date(app.clock.now().getTime() + 60_000)
    await app.database.sql`update api_keys set expires_at = ${expiresAt} where hash = ${hashKey(keys.owner)}`
    assert.equal((await app.as('owner').get('/users/me')).status, 200)
    app.clock.advance({ seconds: 60 })
    assert.equal((await app.as('owner').get('/users/me')).status, 401)
  })

  test('the API key of a removed member gets 401', async () => {
    await using app = await startControl()
    await app.database.sql`delete from members where user_id = ${userId('member')}`
    assert.equal((await app.as('member').get('/users/me')).status, 401)
  })

  test('a reply 403 names the permission that the caller lacks', async () => {
    await using app = await startControl()
    const reply = await app.as('viewer').post('/api-keys', { name: 'x', permissions: [] })
    assert.deepEqual([reply.status, reply.body.message], [403, 'This needs the permission manage:api_keys.'])
    const { status, body } = await app.as('viewer').post('/sandbox', {})
    assert.deepEqual([status, body.message], [403, 'This needs the permission write:sandboxes.'])
  })

  test('an API key loses each permission that its user loses', async () => {
    await using app = await startControl()
    await app.database.sql`
      update members set role = 'member' where user_id = ${userId('owner')}`
    const reply = await app.as('owner').post('/api-keys', { name: 'x', permissions: [] })
    assert.equal(reply.status, 403)
  })

  test('gate endpoints answer 403 to users, 401 to runners; runner endpoints 403 to users, 401 to gates', async () => {
    await using app = await startControl()
    const question = { sandboxIdOrName: 'x', credential: { kind: 'none' }, countsAsActivity: false }
    assert.equal((await app.as('admin').post('/proxy/access', question)).status, 403)
    assert.equal((await app.as('runner').post('/proxy/access', question)).status, 401)
    assert.equal((await app.as('admin').get('/sandbox/for-runner')).status, 403)
    assert.equal((await app.as('proxy').get('/sandbox/for-runner')).status, 401)
    assert.equal((await app.as('runner').get('/sandbox/for-runner')).status, 200)
  })

  test('an organization id with a NUL byte in the path answers 404, like any unknown id', async () => {
    await using app = await startControl()
    for (const who of ['owner', 'admin'] as const)
      for (const path of ['/organizations/%00', `/organizations/${organizations.ours}%00/users`])
        assert.deepEqual([(await app.asUser(who).get(path)).status, path], [404, path])
  })

  test('an API key gets 403 for another organization in a header, 400 for two headers that differ', async () => {
    await using app = await startControl()
    const ask = async (headers: Record<string, string>) => (await app.as('owner').get('/regions', { headers })).status
    const { ours, theirs } = organizations
    assert.equal(await ask({ 'X-Daytona-Organization-ID': ours }), 200)
    assert.equal(await ask({ 'X-Service-Organization-ID': ours }), 200)
    assert.equal(await ask({ 'X-Daytona-Organization-ID': theirs }), 403)
    assert.equal(await ask({ 'X-Service-Organization-ID': 'no such' }), 403)
    assert.equal(await ask({ 'X-Service-Organization-ID': ours, 'X-Daytona-Organization-ID': theirs }), 400)
  })
})

suite('the cached permissions of an API key', () => {
  test('after an API key is deleted, its cached permissions are no longer used', async () => {
    await using app = await startControl()
    const made = await app.as('owner').post('/api-keys', { name: 'short-lived', permissions: [] })
    assert.equal(made.status, 201)
    assert.equal((await app.with(made.body.value).get('/users/me')).status, 200)
    assert.equal((await app.as('owner').delete('/api-keys/short-lived')).status, 204)
    assert.equal((await app.with(made.body.value).get('/users/me')).status, 401)
  })

  test('if another process deletes an API key and notifies control, control soon refuses the key', async () => {
    await using app = await startControl()
    assert.equal((await app.as('member').get('/users/me')).status, 200)
    const other = openDatabase(app.url, { max: 1 })
    await other.transaction(async (transaction) => {
      await transaction`delete from api_keys where hash = ${hashKey(keys.member)}`
      await transaction`select pg_notify('alcove_credentials', '')`
    })
    await other.close()
    // The notification needs a moment to arrive in control, so the test repeats the call until it is refused.
    for (const end = Date.now() + 10_000; Date.now() < end; ) {
      if ((await app.as('member').get('/users/me')).status === 401) return
    }
    assert.fail('a deleted key was still accepted after 10 s')
  })
})
