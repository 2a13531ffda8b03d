import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { addPerson } from '#test/control/add-person.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys, organizations, userId } from '#test/control/people.ts'
import { allPermissions } from '../auth/permissions.ts'

const listed = ['createdAt', 'expiresAt', 'lastUsedAt', 'name', 'permissions', 'userId', 'value']

/** Makes an API key of the user `owner` with only these permissions. */
const makeKey = async (app: TestControl, name: string, permissions: string[]) => {
  const reply = await app.as('owner').post('/api-keys', { name, permissions })
  assert.equal(reply.status, 201)
  return reply.body.value as string
}

suite('POST /api-keys', () => {
  test('POST /api-keys returns the complete key once; the database has only its hash', async () => {
    await using app = await startControl()
    const reply = await app.as('owner').post('/api-keys', {
      name: ' build robot ',
      permissions: ['write:sandboxes', 'write:registries', 'write:sandboxes'],
      expiresAt: '2999-01-01T00:00:00Z',
      unknown: true,
    })
    assert.equal(reply.status, 201)
    const { value, createdAt, ...rest } = reply.body
    assert.match(value, /^dtn_[0-9a-f]{64}$/)
    assert.equal(createdAt, app.clock.now().toISOString())
    assert.deepEqual(rest, {
      name: 'build robot',
      permissions: ['write:sandboxes', 'write:registries'],
      expiresAt: '2999-01-01T00:00:00.000Z',
    })
    const rows = await app.database.sql`select to_jsonb(api_keys)::text as row from api_keys where name = 'build robot'`
    assert.equal(rows.length, 1)
    assert.ok(!rows[0]?.['row'].includes(value.slice(4, 60)))
    const me = await app.with(value).get('/users/me')
    assert.deepEqual([me.status, me.body.id], [200, userId('owner')])
  })

  test('POST /api-keys returns null as expiry if no expiry is given', async () => {
    await using app = await startControl()
    const reply = await app.as('owner').post('/api-keys', { name: 'forever', permissions: [], expiresAt: null })
    assert.deepEqual([reply.status, reply.body.expiresAt], [201, null])
  })

  test('POST /api-keys answers 409 if the caller has a key of that name in this organization', async () => {
    await using app = await startControl()
    const make = async (who: 'owner' | 'stranger') =>
      (await app.as(who).post('/api-keys', { name: 'twice', permissions: [] })).status
    assert.deepEqual([await make('owner'), await make('owner'), await make('stranger')], [201, 409, 201])
  })

  test('POST /api-keys answers 403 without manage:api_keys, and for a permission that the caller lacks', async () => {
    await using app = await startControl()
    const plain = await makeKey(app, 'plain', ['write:sandboxes'])
    assert.equal((await app.with(plain).post('/api-keys', { name: 'child', permissions: [] })).status, 403)
    const managing = await makeKey(app, 'managing', ['manage:api_keys'])
    const reply = await app.with(managing).post('/api-keys', { name: 'child', permissions: ['write:sandboxes'] })
    assert.deepEqual(
      [reply.status, reply.body.message],
      [403, 'You do not hold the permission write:sandboxes yourself.'],
    )
    assert.equal((await app.with(managing).post('/api-keys', { name: 'child', permissions: [] })).status, 201)
  })

  test('POST /api-keys answers 400 for an invalid name, an unknown permission or an expiry in the past', async () => {
    await using app = await startControl()
    const bodies: unknown[] = [
      {},
      { name: 'x' },
      { name: 7, permissions: [] },
      { name: '', permissions: [] },
      { name: '   ', permissions: [] },
      { name: 'a<b>c', permissions: [] },
      { name: 'see https://example.com', permissions: [] },
      { name: 'see www.example.com', permissions: [] },
      { name: 'line\nbreak', permissions: [] },
      { name: 'nul\u0000', permissions: [] },
      { name: 'x'.repeat(300), permissions: [] },
      { name: 'current', permissions: [] },
      { name: 'x', permissions: ['write:everything'] },
      { name: 'x', permissions: 'write:sandboxes' },
      { name: 'x', permissions: [], expiresAt: '2001-01-01T00:00:00Z' },
      { name: 'x', permissions: [], expiresAt: 'tomorrow' },
      { name: 'x', permissions: [], expiresAt: 5 },
      [],
      null,
      'x',
    ]
    for (const body of bodies) {
      assert.equal((await app.as('owner').post('/api-keys', body)).status, 400, JSON.stringify(body))
    }
    assert.equal((await app.as('owner').send('POST', '/api-keys', '{"name":')).body.code, 'INVALID_REQUEST_BODY')
  })
})

suite('the names of API keys', () => {
  test('an API key can have any printable name up to 255 characters; other names answer 400', async () => {
    await using app = await startControl()
    const good = [
      'a',
      '0',
      '...',
      '/',
      'a/b',
      '%2f',
      '%',
      '?a=b&c#d',
      'null',
      'undefined',
      '__proto__',
      'constructor',
      'Current',
      "'; drop table api_keys; --",
      '{"a":1}',
      '日本語 🐢',
      'x'.repeat(255),
    ]
    for (const name of good) {
      const at = `/api-keys/${encodeURIComponent(name)}`
      assert.equal((await app.as('owner').post('/api-keys', { name, permissions: [] })).status, 201, name)
      assert.equal((await app.as('owner').get(at)).body.name, name)
      assert.equal((await app.as('owner').delete(at)).status, 204, name)
      assert.equal((await app.as('owner').get(at)).status, 404, name)
    }
    // `.` and `..` are refused because URL parsers remove them from a path.
    for (const name of [
      '.',
      '..',
      '\u0000',
      'a\u0007',
      '\ud800',
      '\u202eevil',
      '\u200b',
      '<b>x</b>',
      'x'.repeat(256),
    ]) {
      assert.equal((await app.as('owner').post('/api-keys', { name, permissions: [] })).status, 400, name)
    }
  })
})

suite('the maximum number of API keys', () => {
  test('a user may have 500 API keys in an organization, even if more are requested at the same time', async () => {
    await using app = await startControl()
    await app.database.sql`
      insert into api_keys (organization_id, user_id, name, hash, masked_value, permissions)
      select organization_id, user_id, 'key ' || n, encode(sha256(n::text::bytea), 'hex'), 'x', '{}'
      from members, generate_series(1, 490) n where user_id = ${userId('owner')}`
    const make = (_: unknown, index: number) =>
      app.as('owner').post('/api-keys', { name: `more ${index}`, permissions: [] })
    const statuses = (await Promise.all(Array.from({ length: 20 }, make))).map(({ status }) => status)
    // The user already has 490 keys, and the key with which the calls are made. So nine calls succeed.
    assert.equal(statuses.filter((status) => status === 201).length, 9)
    assert.equal(statuses.filter((status) => status === 403).length, 11)
  })

  test('an organization may have 10,000 API keys, and an owner gets all of them in one answer', async () => {
    await using app = await startControl()
    const { sql } = app.database
    await sql`insert into users (id, name, email) select 'many-' || n, 'x', n || '@x.test' from generate_series(1, 20) n`
    await sql`insert into members (organization_id, user_id, role)
              select ${organizations.ours}, 'many-' || n, 'member' from generate_series(1, 20) n`
    const [{ count }] = await sql<[{ count: number }]>`
      select count(*) from api_keys where organization_id = ${organizations.ours}`
    await sql`
      insert into api_keys (organization_id, user_id, name, hash, masked_value, permissions)
      select ${organizations.ours}, 'many-' || (1 + n % 20), 'key ' || n, encode(sha256(n::text::bytea), 'hex'), 'x', '{}'
      from generate_series(1, ${10_000 - count}::int) n`
    assert.equal((await app.as('owner').get('/api-keys')).body.length, 10_000)
    assert.equal((await app.as('member').get('/api-keys')).body.length, 1)
    assert.equal((await app.as('owner').post('/api-keys', { name: 'one more', permissions: [] })).status, 403)
    assert.equal((await app.as('stranger').post('/api-keys', { name: 'one more', permissions: [] })).status, 201)
    // When the member is removed from the organization, all 499 keys of the member are deleted.
    assert.equal((await app.as('owner').delete(`/organizations/${organizations.ours}/users/many-1`)).status, 204)
    assert.equal((await app.as('owner').get('/api-keys')).body.length, 10_000 - 499)
  })

  test('an API key that is made while its user loses a role does not keep that role’s permissions', async () => {
    await using app = await startControl()
    const manager = { name: 'Manager', description: 'x', permissions: ['manage:api_keys', 'write:snapshots'] }
    const roles = `/organizations/${organizations.ours}/roles`
    for (let round = 0; round < 5; round += 1) {
      const roleId = (await app.as('owner').post(roles, { ...manager, name: `Manager ${round}` })).body.id
      const { id, key } = await addPerson(app, {
        roleIds: [roleId],
        permissions: ['manage:api_keys', 'write:snapshots'],
      })
      const make = (name: string) => app.with(key).post('/api-keys', { name, permissions: ['write:snapshots'] })
      await Promise.all([make('1'), make('2'), app.as('owner').delete(`${roles}/${roleId}`), make('3'), make('4')])
      const rows = await app.database.sql<{ permissions: string[] }[]>`
        select permissions from api_keys where user_id = ${id}`
      assert.deepEqual([...new Set(rows.flatMap(({ permissions }) => permissions))], [])
    }
  })
})

suite('GET /api-keys', () => {
  test('GET /api-keys returns all keys of the organization to an owner, and only own keys to a member, all masked', async () => {
    await using app = await startControl()
    const all = await app.as('owner').get('/api-keys')
    assert.equal(all.status, 200)
    assert.deepEqual(all.body.map(({ name }: { name: string }) => name).sort(), ['member', 'owner', 'viewer'])
    for (const key of all.body) assert.match(key.value, /^dtn\*{20}[0-9a-f]{3}$/)
    const own = await app.as('member').get('/api-keys')
    assert.deepEqual(
      own.body.map(({ name, userId: id }: { name: string; userId: string }) => [name, id]),
      [['member', userId('member')]],
    )
    assert.deepEqual(Object.keys(own.body[0]).sort(), listed)
  })
})

suite('GET /api-keys/current', () => {
  test('GET /api-keys/current returns the key with which the request was made', async () => {
    await using app = await startControl()
    const reply = await app.as('owner').get('/api-keys/current')
    assert.deepEqual([reply.status, reply.body.name, reply.body.permissions], [200, 'owner', allPermissions])
    assert.deepEqual(Object.keys(reply.body).sort(), listed)
  })

  test('the last use of an API key is recorded, at most every ten seconds', async () => {
    await using app = await startControl()
    const lastUse = async () => (await app.as('owner').get('/api-keys/current')).body.lastUsedAt as string | null
    const noted = async (expected: string) => {
      // The new time may appear late: it is written after the answer, and control caches a key for up to a second.
      for (const end = Date.now() + 20_000; Date.now() < end; ) if ((await lastUse()) === expected) return
      assert.fail(`the last use never became ${expected}`)
    }
    const first = app.clock.now().toISOString()
    await noted(first)
    app.clock.advance({ seconds: 9 })
    await app.database.sql`select pg_notify('alcove_credentials', '')`
    assert.equal(await lastUse(), first)
    app.clock.advance({ seconds: 1 })
    await noted(app.clock.now().toISOString())
  })
})

suite('GET /api-keys/{name}', () => {
  test('GET /api-keys/{name} returns a key of the caller', async () => {
    await using app = await startControl()
    const reply = await app.as('member').get('/api-keys/member')
    assert.deepEqual([reply.status, reply.body.name], [200, 'member'])
  })

  test('GET /api-keys/{name} answers 404 for an unknown name and for another user’s key', async () => {
    await using app = await startControl()
    for (const name of ['owner', 'stranger', 'no-such']) {
      assert.equal((await app.as('member').get(`/api-keys/${name}`)).status, 404)
    }
  })

  test('GET /api-keys/{name} finds a key whose name has slashes, spaces or percent signs, if they are encoded', async () => {
    await using app = await startControl()
    const name = 'a/b c?ü%'
    await makeKey(app, name, [])
    assert.equal((await app.as('owner').get(`/api-keys/${encodeURIComponent(name)}`)).body.name, name)
  })
})

suite('DELETE /api-keys/{name}', () => {
  test('DELETE /api-keys/{name} makes the key invalid immediately; other keys still work', async () => {
    await using app = await startControl()
    const value = await makeKey(app, 'doomed', [])
    const reply = await app.as('owner').delete('/api-keys/doomed')
    assert.deepEqual([reply.status, reply.text], [204, ''])
    assert.equal((await app.with(value).get('/users/me')).status, 401)
    assert.equal((await app.as('owner').get('/users/me')).status, 200)
    assert.equal((await app.as('owner').delete('/api-keys/doomed')).status, 404)
  })

  test('DELETE /api-keys/{name} answers 204 to a key that deletes itself, even if the key has no permission', async () => {
    await using app = await startControl()
    assert.equal((await app.as('viewer').delete('/api-keys/viewer')).status, 204)
    assert.equal((await app.as('viewer').get('/users/me')).status, 401)
  })

  test('DELETE /api-keys/{name} answers 403 if a key without manage:api_keys deletes another key of its user', async () => {
    await using app = await startControl()
    const plain = await makeKey(app, 'plain', ['write:sandboxes'])
    assert.equal((await app.with(plain).delete('/api-keys/owner')).status, 403)
    assert.equal((await app.as('owner').get('/users/me')).status, 200)
  })
})

suite('DELETE /api-keys/{userId}/{name}', () => {
  test('DELETE /api-keys/{userId}/{name} makes another user’s key invalid immediately, if the caller is an owner', async () => {
    await using app = await startControl()
    assert.equal((await app.as('member').get('/users/me')).status, 200)
    assert.equal((await app.as('owner').delete(`/api-keys/${userId('member')}/member`)).status, 204)
    assert.equal((await app.as('member').get('/users/me')).status, 401)
  })

  test('DELETE /api-keys/{userId}/{name} answers 403 to a member, and the key keeps working', async () => {
    await using app = await startControl()
    assert.equal((await app.as('member').delete(`/api-keys/${userId('viewer')}/viewer`)).status, 403)
    assert.equal((await app.as('viewer').get('/users/me')).status, 200)
  })

  test('DELETE /api-keys/{userId}/{name} answers 404 for another organization’s key, and the key keeps working', async () => {
    await using app = await startControl()
    assert.equal((await app.as('owner').delete(`/api-keys/${userId('stranger')}/stranger`)).status, 404)
    assert.equal((await app.with(keys.stranger).get('/users/me')).status, 200)
  })
})
