// A user made by single sign-on can sign in only through one identity provider. These tests change that provider, or delete it and
// make it again.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { addPerson } from '#test/control/add-person.ts'
import { organizations } from '#test/control/people.ts'
import { developer, type SsoControl, startSso } from '#test/sso/organization.ts'
import { startProvider, type TestProvider } from '#test/sso/provider.ts'

let provider: TestProvider
let other: TestProvider

const ada = { email: 'ada@example.com', email_verified: true, name: 'Ada' }
const admin = '00000000-0000-0000-0000-000000000002'

before(async () => {
  provider = await startProvider()
  other = await startProvider({ clientId: provider.setup.clientId, clientSecret: provider.setup.clientSecret })
  await provider.setAccounts({ ada, usurper: ada })
  await other.setAccounts({ ada })
})
after(async () => {
  await provider?.stop()
  await other?.stop()
})

/** Signs in by single sign-on. Returns the id of the user, or the error code. */
const end = async (sso: SsoControl, login = 'ada'): Promise<string> => {
  const { status, body } = await sso.signIn(login)
  return status === 200 ? body.userId : body.code
}

const path = `/organizations/${organizations.ours}/identity-providers`

const makeAnew = async ({ app, providerId }: SsoControl, more: object = {}) => {
  assert.equal((await app.as('owner').delete(`${path}/${providerId}`)).status, 204)
  const { clientId, clientSecret } = provider.setup
  const reply = await app.as('owner').post(path, {
    name: 'Anew',
    oidcConfig: { issuerUrl: provider.issuer, clientId, clientSecret },
    emailDomains: ['example.com'],
    defaultAssignedRoleIds: [developer],
    ...more,
  })
  assert.equal(reply.status, 201, reply.text)
}

suite('a user made by single sign-on whose identity provider changes', () => {
  test('after an identity provider was deleted and made again, its users sign in as the same users', async () => {
    await using sso = await startSso(provider)
    const id = await end(sso)
    await makeAnew(sso)
    assert.deepEqual([await end(sso), await end(sso)], [id, id])
  })

  test('if a provider’s issuer changes, users can still sign in; their old API keys and SSO links end', async () => {
    await using sso = await startSso(provider)
    const { userId: id, accessToken } = (await sso.signIn('ada')).body
    const made = await sso.app.with(accessToken).post('/api-keys', { name: 'before', permissions: [] })
    const keyed = sso.app.with(made.body.value)
    assert.equal((await keyed.get('/users/me')).status, 200)
    await sso.change({ oidcConfig: { issuerUrl: other.issuer } })
    assert.equal(await end(sso), id)
    assert.equal((await keyed.get('/users/me')).status, 401)
    const links = await sso.app.database.sql<{ issuer_url: string }[]>`select issuer_url from sso_links`
    assert.deepEqual(
      links.map((link) => link.issuer_url),
      [other.issuer],
    )
  })

  test('a second account at an issuer with the e-mail address of the first account gets link_refused', async () => {
    await using sso = await startSso(provider)
    const id = await end(sso)
    assert.equal(await end(sso, 'usurper'), 'link_refused')
    assert.equal(await end(sso), id)
  })

  test('a recreated identity provider cannot sign in a user who has more than the default permissions', async () => {
    await using sso = await startSso(provider)
    const id = await end(sso)
    await makeAnew(sso)
    const { app } = sso
    const asMember = (access: object) =>
      app.as('owner').post(`/organizations/${organizations.ours}/users/${id}/access`, access)
    assert.equal((await asMember({ role: 'member', assignedRoleIds: [developer, admin] })).status, 200)
    assert.equal(await end(sso), 'link_refused')
    assert.equal((await asMember({ role: 'owner', assignedRoleIds: [] })).status, 200)
    assert.equal(await end(sso), 'link_refused')
    assert.equal((await asMember({ role: 'member', assignedRoleIds: [] })).status, 200)
    assert.equal(await end(sso), id)
  })

  test('a recreated identity provider that does not list a user’s e-mail domain cannot sign that user in', async () => {
    await using sso = await startSso(provider)
    await end(sso)
    await makeAnew(sso, { emailDomains: [], allowAnyDomain: true })
    assert.equal(await end(sso), 'link_refused')
  })

  test('a recreated identity provider cannot sign in a user who has other organizations or ways to sign in', async () => {
    await using sso = await startSso(provider)
    const { sql } = sso.app.database
    const id = await end(sso)
    await makeAnew(sso)
    const isRefused = async (change: () => Promise<unknown>, back: () => Promise<unknown>) => {
      await change()
      assert.equal(await end(sso), 'link_refused')
      await back()
    }
    await isRefused(
      () => sql`insert into members (organization_id, user_id, role) values (${organizations.theirs}, ${id}, 'member')`,
      () => sql`delete from members where user_id = ${id} and organization_id = ${organizations.theirs}`,
    )
    await isRefused(
      () => sql`
        insert into user_identities (issuer, subject, user_id, email, email_verified, name, said_at, is_source)
        values ('x', 'x', ${id}, 'x', true, 'x', now(), false)`,
      () => sql`delete from user_identities where user_id = ${id}`,
    )
    await isRefused(
      () => sql`insert into user_passwords (user_id, hash, changed_at) values (${id}, 'x', now())`,
      () => sql`delete from user_passwords where user_id = ${id}`,
    )
    assert.equal(await end(sso), id)
    await makeAnew({ ...sso, providerId: (await sso.app.as('owner').get(path)).body[0].id })
    await sql`delete from members where user_id = ${id} and organization_id = ${organizations.ours}`
    assert.equal(await end(sso), 'link_refused')
  })

  test('single sign-on with the unverified e-mail address of an existing user fails with link_refused', async () => {
    await using sso = await startSso(provider)
    await addPerson(sso.app, { email: ada.email, emailVerified: false, roleIds: [] })
    assert.equal(await end(sso), 'link_refused')
  })
})
