import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { startIssuer, type TestIssuer } from '#test/control/issuer.ts'
import { testSettings } from '#test/control/test-settings.ts'
import { providerName } from './linked-accounts.ts'

let one: TestIssuer
let other: TestIssuer
let app: TestControl
let people = 0

/** Signs in a new person at the issuer `one`. Returns that person's token. */
const newPerson = async (claims: Record<string, unknown> = {}) => {
  people += 1
  const sub = `person-${people}`
  const said = { sub, email: `${sub}@example.com`, email_verified: true, ...claims }
  const client = app.with(await one.token(said))
  assert.equal((await client.get('/users/me')).status, 200)
  return { sub, said, client }
}

const attempt = async (claims: Record<string, unknown>) =>
  (await app.with(await other.token(claims)).get('/users/me')).status

suite('linking accounts at several issuers to one user', () => {
  before(async () => {
    one = await startIssuer()
    other = await startIssuer()
    const identity = { ...testSettings.identity, issuers: [one.url, other.url] }
    app = await startControl({ settings: { identity } })
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
    await one?.[Symbol.asyncDispose]()
    await other?.[Symbol.asyncDispose]()
  })

  test('GET /users/account-providers lists all issuers, and marks those with which the caller can sign in', async () => {
    const { client } = await newPerson()
    const reply = await client.get('/users/account-providers')
    assert.equal(reply.status, 200)
    const named = (url: string, linked: boolean) => ({
      name: providerName(url),
      displayName: new URL(url).host,
      provider: providerName(url),
      linked,
    })
    assert.deepEqual(reply.body, [named(one.url, true), named(other.url, false)])
    assert.equal((await app.as('nobody').get('/users/account-providers')).status, 401)
  })

  test('POST /users/linked-accounts lets a second account at another issuer sign in as the same user', async () => {
    const { sub, said, client } = await newPerson()
    const second = { ...said, sub: `second-${sub}` }
    assert.equal(await attempt(second), 403)
    const link = () =>
      client.post('/users/linked-accounts', { provider: providerName(other.url), userId: `second-${sub}` })
    assert.equal((await link()).status, 204)
    const me = await client.get('/users/me')
    assert.equal((await app.with(await other.token(second)).get('/users/me')).body.id, me.body.id)
    assert.equal((await link()).status, 400)
  })

  test('POST /users/linked-accounts answers 400 for an account that is unknown, unverified or another user’s', async () => {
    const { sub, said, client } = await newPerson()
    const provider = providerName(other.url)
    await attempt({ ...said, sub: `unverified-${sub}`, email_verified: false })
    const foreign = await newPerson()
    await attempt({ ...foreign.said, sub: `foreign-${sub}` })
    assert.equal(await attempt({ sub: `own-${sub}`, email: `own-${sub}@example.com`, email_verified: true }), 200)
    for (const userId of [
      'no-such',
      `unverified-${sub}`,
      `foreign-${sub}`,
      `own-${sub}`,
      "'; drop table users",
      '\ud800',
    ]) {
      assert.equal((await client.post('/users/linked-accounts', { provider, userId })).status, 400, userId)
    }
    for (const body of [
      { provider },
      { provider: 'no-such', userId: 'x' },
      { provider, userId: '' },
      { provider, userId: 1 },
    ]) {
      assert.equal((await client.post('/users/linked-accounts', body)).status, 400)
    }
  })

  test('POST /users/linked-accounts answers 400 if only an organization’s SSO provider has verified the caller’s e-mail address', async () => {
    const { sub, said, client } = await newPerson()
    await app.database.sql`update users set email_verified_by = 'sso' where email = ${said.email}`
    await attempt({ ...said, sub: `owner-${sub}` })
    const body = { provider: providerName(other.url), userId: `owner-${sub}` }
    assert.equal((await client.post('/users/linked-accounts', body)).status, 400)
  })

  test('POST /users/linked-accounts answers 400 to a caller whose e-mail address is unverified', async () => {
    const { sub, said, client } = await newPerson({ email_verified: false })
    await attempt({ ...said, sub: `second-${sub}`, email_verified: true })
    const body = { provider: providerName(other.url), userId: `second-${sub}` }
    assert.equal((await client.post('/users/linked-accounts', body)).status, 400)
  })

  test('DELETE /users/linked-accounts/{provider}/{providerUserId} answers 204, 400 for the last account, 404 for another user’s account', async () => {
    const { sub, said, client } = await newPerson()
    await attempt({ ...said, sub: `second-${sub}` })
    const provider = providerName(other.url)
    await client.post('/users/linked-accounts', { provider, userId: `second-${sub}` })
    const stranger = await newPerson()
    assert.equal((await stranger.client.delete(`/users/linked-accounts/${provider}/second-${sub}`)).status, 404)
    assert.equal((await client.delete(`/users/linked-accounts/${provider}/second-${sub}`)).status, 204)
    assert.equal(await attempt({ ...said, sub: `second-${sub}` }), 403)
    assert.equal((await client.delete(`/users/linked-accounts/${provider}/second-${sub}`)).status, 404)
    const last = await client.delete(`/users/linked-accounts/${providerName(one.url)}/${sub}`)
    assert.deepEqual(
      [last.status, last.body.message],
      [400, 'You cannot unlink the only account with which you sign in.'],
    )
    assert.equal((await client.get('/users/me')).status, 200)
  })

  test('an API key gets 403 for linking accounts, because a key may not change how its user signs in', async () => {
    const provider = providerName(one.url)
    const link = await app.as('owner').post('/users/linked-accounts', { provider, userId: 'x' })
    const unlink = await app.as('owner').delete(`/users/linked-accounts/${provider}/x`)
    assert.deepEqual([link.status, unlink.status], [403, 403])
  })

  test('if no issuer is configured, linking accounts answers 404, and the list of issuers is empty', async () => {
    await using bare = await startControl({ settings: { identity: testSettings.identity } })
    const owner = bare.as('owner')
    assert.deepEqual((await owner.get('/users/account-providers')).body, [])
    assert.equal((await owner.post('/users/linked-accounts', { provider: 'x', userId: 'x' })).status, 404)
    assert.equal((await owner.delete('/users/linked-accounts/x/x')).status, 404)
  })

  test('POST /users/mfa/sms/enroll answers 404, because this server sends no SMS codes', async () => {
    const { client } = await newPerson()
    const reply = await client.post('/users/mfa/sms/enroll')
    assert.deepEqual([reply.status, reply.body.code], [404, 'NOT_FOUND'])
  })
})
