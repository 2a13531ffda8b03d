import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { addPerson } from '#test/control/add-person.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { startIssuer } from '#test/control/issuer.ts'
import { testSettings } from '#test/control/test-settings.ts'

const ada = { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada' }

const meOf = async (app: TestControl, claims: Parameters<TestControl['asNewcomer']>[0]) => {
  const { status, body } = await app.asNewcomer(claims).get('/users/me')
  assert.equal(status, 200, JSON.stringify(body))
  return body as { id: string; name: string; email: string; emailVerified: boolean }
}

const statusOf = async (app: TestControl, claims: Parameters<TestControl['asNewcomer']>[0]) =>
  (await app.asNewcomer(claims).get('/users/me')).status

const verifiedBy = async (app: TestControl, email: string) => {
  const [row] = await app.database.sql<{ by: string | null }[]>`
    select email_verified_by as by from users where email = ${email}`
  return row?.by
}

suite('a person who signs in for the first time', () => {
  test('a person’s first sign-in makes one user and one organization, even with 50 requests at the same time', async () => {
    await using app = await startControl()
    const replies = await Promise.all(Array.from({ length: 50 }, () => app.asNewcomer(ada).get('/organizations')))
    assert.deepEqual([...new Set(replies.map(({ status }) => status))], [200])
    assert.equal(new Set(replies.map(({ body }) => body[0].id)).size, 1)
    const [counted] = await app.database.sql`
      select (select count(*)::int from users where email = ${ada.email}) as users,
             (select count(*)::int from organizations where name = 'Personal' and created_by <> 'admin'
                and created_by in (select id from users where email = ${ada.email})) as organizations`
    assert.deepEqual({ ...counted }, { users: 1, organizations: 1 })
    const [organization] = replies[0]!.body
    assert.deepEqual(
      [organization.name, organization.personal, organization.defaultRegionId],
      ['Personal', true, 'local'],
    )
  })

  test('a new user gets name and e-mail address from the token, and whether the address is verified', async () => {
    await using app = await startControl()
    const { id, ...me } = await meOf(app, ada)
    assert.ok(id)
    assert.deepEqual([me.name, me.email, me.emailVerified], ['Ada', 'ada@example.com', true])
    assert.equal(await verifiedBy(app, 'ada@example.com'), 'issuer')
    const unverified = await meOf(app, {
      sub: 'bob',
      email: 'bob@example.com',
      username: 'bobby',
      email_verified: 'true',
    })
    assert.deepEqual([unverified.name, unverified.emailVerified], ['bobby', false])
    assert.equal(await verifiedBy(app, 'bob@example.com'), null)
  })

  test('a first sign-in without a valid e-mail address gets 401', async () => {
    await using app = await startControl()
    for (const email of [
      undefined,
      '',
      'ada',
      'a b@example.com',
      'ada@',
      '<ada@example.com>',
      1,
      `${'a'.repeat(250)}@example.com`,
    ]) {
      assert.equal(await statusOf(app, { sub: 'ada', email }), 401, String(email))
    }
  })

  test('a new user’s name is shortened, and control characters are removed from it', async () => {
    await using app = await startControl()
    assert.equal((await meOf(app, { ...ada, name: 'A\u0000d\u202ea\n' })).name, 'Ada')
    assert.equal((await meOf(app, { sub: 'b', email: 'b@example.com', name: 'x'.repeat(4000) })).name.length, 255)
    assert.equal((await meOf(app, { sub: 'c', email: 'c@example.com', name: '\u0000 ' })).name, 'c@example.com')
  })

  test('a first sign-in gets 403 if another user has the e-mail address, in any letter case', async () => {
    await using app = await startControl()
    for (const email of ['owner@example.com', 'OWNER@Example.com']) {
      const reply = await app.asNewcomer({ sub: email, email, email_verified: true }).get('/users/me')
      assert.equal(reply.status, 403)
      assert.match(reply.body.message, /belongs to another account/)
    }
    const [{ count }] = await app.database.sql<[{ count: number }]>`
      select count(*)::int as count from users where lower(email) = 'owner@example.com'`
    assert.equal(count, 1)
  })

  test('a first sign-in gets 403 if another user has the e-mail address, until that user changes the address', async () => {
    await using app = await startControl()
    const claims = { sub: 'late', email: 'viewer@example.com' }
    assert.equal(await statusOf(app, claims), 403)
    await app.database.sql`update users set email = 'moved@example.com' where email = 'viewer@example.com'`
    app.app.sandboxes.callers.forget()
    assert.equal((await meOf(app, claims)).email, 'viewer@example.com')
  })
})

suite('an e-mail address that only an organization’s identity provider has verified', () => {
  test('if only SSO verified a user’s e-mail address, a new user whose token verifies it gets the address', async () => {
    await using app = await startControl()
    const squatter = await addPerson(app, { email: 'ADA@example.com', emailVerifiedBy: 'sso' })
    assert.equal(await statusOf(app, { ...ada, email_verified: false }), 403)
    app.clock.advance({ seconds: 10 })
    const me = await meOf(app, ada)
    assert.notEqual(me.id, squatter.id)
    assert.deepEqual([me.email, me.emailVerified], [ada.email, true])
    const left = (await app.with(squatter.key).get('/users/me')).body
    assert.deepEqual([left.id, left.emailVerified], [squatter.id, false])
    assert.match(left.email, /^[0-9a-f-]{36}@sso\.invalid$/)
  })

  test('if only SSO verified a user’s e-mail address, a known user whose token verifies it gets the address', async () => {
    await using app = await startControl()
    await meOf(app, ada)
    await addPerson(app, { email: 'ada@new.example', emailVerifiedBy: 'sso' })
    app.clock.advance({ seconds: 10 })
    assert.equal((await meOf(app, { ...ada, email: 'ada@new.example' })).email, 'ada@new.example')
  })
})

suite('a person who has signed in before', () => {
  test('a known user gets the name and the e-mail address of the newest token', async () => {
    await using app = await startControl()
    const { id } = await meOf(app, ada)
    app.clock.advance({ seconds: 10 })
    const changed = { ...ada, name: 'Ada L.', email: 'ada@new.example', email_verified: false }
    assert.deepEqual(
      { ...(await meOf(app, changed)), createdAt: undefined, publicKeys: undefined },
      {
        id,
        name: 'Ada L.',
        email: 'ada@new.example',
        emailVerified: false,
        createdAt: undefined,
        publicKeys: undefined,
      },
    )
    assert.equal(await verifiedBy(app, 'ada@new.example'), null)
  })

  test('a token older than the user’s last token changes neither name nor e-mail address', async () => {
    await using app = await startControl()
    const old = await app.issuer.token({ ...ada, name: 'Old' }, { now: app.clock.now() })
    app.clock.advance({ seconds: 10 })
    await meOf(app, ada)
    assert.equal((await app.with(old).get('/users/me')).body.name, 'Ada')
  })

  test('a known user keeps the old e-mail address if the token’s new address belongs to another user', async () => {
    await using app = await startControl()
    await meOf(app, ada)
    app.clock.advance({ seconds: 10 })
    const me = await meOf(app, { ...ada, name: 'Eve', email: 'OWNER@example.com' })
    assert.deepEqual([me.name, me.email, me.emailVerified], ['Eve', 'ada@example.com', true])
  })

  test('a known user keeps the e-mail address if a newer token has none', async () => {
    await using app = await startControl()
    await meOf(app, ada)
    app.clock.advance({ seconds: 10 })
    const me = await meOf(app, { sub: 'ada', name: 'Ada' })
    assert.deepEqual([me.email, me.emailVerified], ['ada@example.com', true])
  })

  test('an e-mail address that an operator verified stays verified, even if the token says otherwise', async () => {
    await using app = await startControl()
    await meOf(app, ada)
    await app.database.sql`update users set email_verified_by = 'admin' where email = ${ada.email}`
    app.clock.advance({ seconds: 10 })
    const me = await meOf(app, { ...ada, email_verified: false })
    assert.equal(me.emailVerified, true)
    assert.equal(await verifiedBy(app, ada.email), 'admin')
  })
})

test('an account with the same subject at a second issuer does not sign in as the first account’s user', async () => {
  await using one = await startIssuer()
  await using other = await startIssuer()
  const identity = { ...testSettings.identity, issuers: [one.url, other.url] }
  await using app = await startControl({ settings: { identity } })
  assert.equal((await app.with(await one.token(ada)).get('/users/me')).status, 200)
  assert.equal((await app.with(await other.token(ada)).get('/users/me')).status, 403)
})
