import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { keys, organizations, userId } from '#test/control/people.ts'
import { openDatabase } from '../storage/database.ts'
import { hashKey, newKey } from './secret.ts'

const jwt = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1c2VyLW93bmVyIn0.c2ln'

suite('who may call', () => {
  test('401 to no token, an unknown or malformed key, a JWT, and a service key on a route of users', async () => {
    await using app = await startControl()
    for (const token of [newKey(), 'x', keys.owner.slice(0, -1), keys.owner.toUpperCase(), keys.proxy, jwt]) {
      const reply = await app.with(token).get('/users/me')
      assert.deepEqual([reply.status, reply.body.code], [401, 'UNAUTHORIZED'], token)
    }
    assert.equal((await app.as('nobody').get('/users/me')).status, 401)
  })

  test('401 to a key from the moment it expires', async () => {
    await using app = await startControl()
    const expiresAt = new Date(app.clock.now().getTime() + 60_000)
    await app.database.sql`update api_keys set expires_at = ${expiresAt} where hash = ${hashKey(keys.owner)}`
    assert.equal((await app.as('owner').get('/users/me')).status, 200)
    app.clock.advance({ seconds: 60 })
    assert.equal((await app.as('owner').get('/users/me')).status, 401)
  })

  test('401 to the key of a former member', async () => {
    await using app = await startControl()
    await app.database.sql`delete from members where user_id = ${userId('member')}`
    assert.equal((await app.as('member').get('/users/me')).status, 401)
  })

  test('403 names the permission that is missing', async () => {
    await using app = await startControl()
    const reply = await app.as('viewer').post('/api-keys', { name: 'x', permissions: [] })
    assert.deepEqual([reply.status, reply.body.message], [403, 'This needs the permission manage:api_keys.'])
    const { status, body } = await app.as('viewer').post('/sandbox', {})
    assert.deepEqual([status, body.message], [403, 'This needs the permission write:sandboxes.'])
  })

  test('a key gives only permissions that its user still has', async () => {
    await using app = await startControl()
    await app.database.sql`
      update members set role = 'member' where user_id = ${userId('owner')}`
    const reply = await app.as('owner').post('/api-keys', { name: 'x', permissions: [] })
    assert.equal(reply.status, 403)
  })

  test('403 to users on routes of services; 401 on these routes to an unknown credential', async () => {
    await using app = await startControl()
    const question = { sandboxIdOrName: 'x', credential: { kind: 'none' }, countsAsActivity: false }
    assert.equal((await app.as('admin').post('/proxy/access', question)).status, 403)
    assert.equal((await app.as('runner').post('/proxy/access', question)).status, 401)
    assert.equal((await app.as('admin').get('/sandbox/for-runner')).status, 403)
    assert.equal((await app.as('proxy').get('/sandbox/for-runner')).status, 401)
    assert.equal((await app.as('runner').get('/sandbox/for-runner')).status, 200)
  })

  test('404 for an organization whose name has a NUL, as for any unknown organization', async () => {
    await using app = await startControl()
    for (const who of ['owner', 'admin'] as const)
      for (const path of ['/organizations/%00', `/organizations/${organizations.ours}%00/users`])
        assert.deepEqual([(await app.asUser(who).get(path)).status, path], [404, path])
  })

  test('both organization headers are read: another organization is 403, two different ones are 400', async () => {
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

suite('the cached answer about a key', () => {
  test('a cached answer is dropped in every process when the key is deleted in one of them', async () => {
    await using app = await startControl()
    const made = await app.as('owner').post('/api-keys', { name: 'short-lived', permissions: [] })
    assert.equal(made.status, 201)
    assert.equal((await app.with(made.body.value).get('/users/me')).status, 200)
    assert.equal((await app.as('owner').delete('/api-keys/short-lived')).status, 204)
    assert.equal((await app.with(made.body.value).get('/users/me')).status, 401)
  })

  test('after an announcement of another process, the next request checks the key in the database', async () => {
    await using app = await startControl()
    assert.equal((await app.as('member').get('/users/me')).status, 200)
    const other = openDatabase(app.url, { max: 1 })
    await other.transaction(async (transaction) => {
      await transaction`delete from api_keys where hash = ${hashKey(keys.member)}`
      await transaction`select pg_notify('alcove_credentials', '')`
    })
    await other.close()
    // The notification of the database takes a moment. Without the notification, the cache would expire after a second.
    for (const end = Date.now() + 10_000; Date.now() < end; ) {
      if ((await app.as('member').get('/users/me')).status === 401) return
    }
    assert.fail('a deleted key was still accepted after 10 s')
  })
})
