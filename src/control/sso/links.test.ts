// Single sign-on of a person whose e-mail address belongs to one of our users. The sign-in is refused until that user confirms the
// link.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { addPerson } from '#test/control/add-person.ts'
import { organizations, userId } from '#test/control/people.ts'
import { developer, type SsoControl, startSso } from '#test/sso/organization.ts'
import { startProvider, type TestProvider } from '#test/sso/provider.ts'

let provider: TestProvider

before(async () => {
  provider = await startProvider()
  await provider.setAccounts({
    member: { email: 'Member@example.com', email_verified: true, name: 'Somebody' },
    outsider: { email: 'outsider@example.com', email_verified: true },
    ada: { email: 'ada@example.com', email_verified: true },
  })
})
after(() => provider?.stop())

const pending = '/users/me/pending-sso-links'

const codeOf = async (sso: SsoControl, login: string) => {
  const { status, body } = await sso.signIn(login)
  return status === 200 ? 200 : body.code
}

/** Tries to sign in as `member`, which makes a pending link. Returns the id of the link. */
const begin = async (sso: SsoControl): Promise<string> => {
  assert.equal(await codeOf(sso, 'member'), 'link_pending')
  const { status, body } = await sso.app.as('member').get(pending)
  assert.deepEqual([status, body.length], [200, 1])
  return body[0].id
}

suite('GET /users/me/pending-sso-links', () => {
  test('GET /users/me/pending-sso-links returns only the links that the caller can confirm', async () => {
    await using sso = await startSso(provider)
    const { app } = sso
    assert.deepEqual((await app.as('member').get(pending)).body, [])
    const id = await begin(sso)
    const createdAt = app.clock.now()
    const expiresAt = new Date(createdAt.getTime() + 7 * 86_400_000)
    assert.deepEqual((await app.as('member').get(pending)).body, [
      {
        id,
        idpName: 'Example',
        organizationId: organizations.ours,
        providerEmail: 'Member@example.com',
        createdAt: createdAt.toISOString(),
        expiresAt: expiresAt.toISOString(),
      },
    ])
    assert.deepEqual((await app.as('owner').get(pending)).body, [])
    assert.equal((await app.as('nobody').get(pending)).status, 401)
  })

  test('a second SSO sign-in of a person does not change the pending SSO link', async () => {
    await using sso = await startSso(provider)
    const id = await begin(sso)
    sso.app.clock.advance({ hours: 1 })
    assert.equal(await begin(sso), id)
  })
})

suite('POST /users/me/pending-sso-links/{id}/confirm', () => {
  const confirm = (id: string) => `${pending}/${id}/confirm`

  test('after POST /users/me/pending-sso-links/{id}/confirm, the next single sign-on signs in the existing user', async () => {
    await using sso = await startSso(provider)
    const { app } = sso
    const before = (await app.as('member').get('/users/me')).body
    const id = await begin(sso)
    const reply = await app.as('member').post(confirm(id))
    assert.deepEqual([reply.status, reply.text], [204, ''])
    const page = await sso.signIn('member')
    assert.deepEqual([page.status, page.body.userId], [200, userId('member')])
    assert.deepEqual((await app.with(page.body.accessToken).get('/users/me')).body, before)
    assert.deepEqual((await app.as('member').get(pending)).body, [])
    // The decision is final: a link that was confirmed can be neither confirmed again nor rejected.
    assert.equal((await app.as('member').post(confirm(id))).status, 404)
    assert.equal((await app.as('member').delete(`${pending}/${id}`)).status, 404)
  })

  test('a user who confirms an SSO link becomes a member of the organization at the next SSO sign-in', async () => {
    await using sso = await startSso(provider)
    const { app } = sso
    const outsider = await addPerson(app, {
      email: 'outsider@example.com',
      organizationId: organizations.theirs,
      role: 'owner',
    })
    const roleHere = async () => {
      const members = (await app.as('owner').get(`/organizations/${organizations.ours}/users`)).body
      const member = members.find((one: { userId: string }) => one.userId === outsider.id)
      return member?.assignedRoles.map((role: { id: string }) => role.id)
    }
    assert.equal(await codeOf(sso, 'outsider'), 'link_pending')
    const [{ id }] = (await app.with(outsider.key).get(pending)).body
    assert.equal((await app.with(outsider.key).post(confirm(id))).status, 204)
    assert.equal(await roleHere(), undefined)
    assert.equal(await codeOf(sso, 'outsider'), 200)
    assert.deepEqual(await roleHere(), [developer])
  })

  test('confirming an SSO link answers 404 if the user’s e-mail address changed or is no longer verified', async () => {
    await using sso = await startSso(provider)
    const { sql } = sso.app.database
    const id = await begin(sso)
    const confirmAs = async (change: object) => {
      await sql`update users set ${sql(change)} where id = ${userId('member')}`
      return (await sso.app.as('member').post(confirm(id))).status
    }
    assert.equal(await confirmAs({ email_verified: true, email_verified_by: 'sso' }), 404)
    assert.equal(await confirmAs({ email_verified: false, email_verified_by: null }), 404)
    assert.equal(await codeOf(sso, 'member'), 'link_refused')
    const proven = { email_verified: true, email_verified_by: 'admin' }
    assert.equal(await confirmAs({ ...proven, email: 'moved@example.com' }), 404)
    assert.equal(await confirmAs({ email: 'member@example.com' }), 204)
  })

  test('a user can confirm an SSO link with a JWT or with an API key', async () => {
    await using sso = await startSso(provider)
    const id = await begin(sso)
    assert.equal((await sso.app.asUser('member').post(confirm(id))).status, 204)
    assert.equal(await codeOf(sso, 'member'), 200)
  })

  test('only the linked user can confirm or reject an SSO link; others get 404, and the link stays', async () => {
    await using sso = await startSso(provider)
    const { app } = sso
    const id = await begin(sso)
    const { accessToken } = (await sso.signIn('ada')).body
    for (const client of [app.as('owner'), app.as('stranger'), app.as('admin'), app.with(accessToken)]) {
      assert.equal((await client.post(confirm(id))).status, 404)
      assert.equal((await client.delete(`${pending}/${id}`)).status, 404)
    }
    assert.equal((await app.as('nobody').post(confirm(id))).status, 401)
    assert.equal((await app.as('member').post(confirm('no-such'))).status, 404)
    assert.equal((await app.as('member').get(pending)).body.length, 1)
    assert.equal(await codeOf(sso, 'member'), 'link_pending')
  })

  test('an API key with fewer permissions than its user gets 403 for confirming or rejecting an SSO link', async () => {
    await using sso = await startSso(provider)
    const id = await begin(sso)
    const { sql } = sso.app.database
    await sql`update members set role = 'owner' where user_id = ${userId('member')}`
    assert.equal((await sso.app.as('member').post(confirm(id))).status, 403)
    assert.equal((await sso.app.as('member').delete(`${pending}/${id}`)).status, 403)
    assert.equal((await sso.app.asUser('member').post(confirm(id))).status, 204)
  })

  test('a pending SSO link ends after seven days: it is not listed, and the next sign-in makes a new one', async () => {
    await using sso = await startSso(provider)
    const { app } = sso
    const id = await begin(sso)
    app.clock.advance({ hours: 7 * 24 })
    assert.deepEqual((await app.as('member').get(pending)).body, [])
    assert.equal((await app.as('member').post(confirm(id))).status, 404)
    const next = await begin(sso)
    assert.notEqual(next, id)
    assert.equal((await app.as('member').post(confirm(next))).status, 204)
  })

  test('if an SSO link is confirmed and rejected at the same time, exactly one of the requests succeeds', async () => {
    await using sso = await startSso(provider)
    const id = await begin(sso)
    const replies = await Promise.all([
      sso.app.as('member').post(confirm(id)),
      sso.app.as('member').delete(`${pending}/${id}`),
      sso.app.as('member').post(confirm(id)),
    ])
    assert.deepEqual(replies.map(({ status }) => status).sort(), [204, 404, 404])
  })
})

suite('DELETE /users/me/pending-sso-links/{id}', () => {
  test('DELETE /users/me/pending-sso-links/{id} rejects the link, and the next SSO sign-in makes a new one', async () => {
    await using sso = await startSso(provider)
    const { app } = sso
    const id = await begin(sso)
    const reply = await app.as('member').delete(`${pending}/${id}`)
    assert.deepEqual([reply.status, reply.text], [204, ''])
    assert.deepEqual((await app.as('member').get(pending)).body, [])
    const next = await begin(sso)
    assert.notEqual(next, id)
    assert.equal((await app.as('member').post(`${pending}/${id}/confirm`)).status, 404)
    assert.equal((await app.as('member').delete(`${pending}/${id}`)).status, 404)
  })
})

suite('a user that somebody made in advance with another person’s e-mail address', () => {
  test('SSO fails with link_refused if this user’s e-mail address is unverified, or if only SSO verified it', async () => {
    await using sso = await startSso(provider)
    const { app } = sso
    for (const how of [{ emailVerified: false }, { emailVerifiedBy: 'sso' }] as const) {
      const squatter = await addPerson(app, {
        email: 'outsider@example.com',
        organizationId: organizations.theirs,
        role: 'owner',
        ...how,
      })
      assert.equal(await codeOf(sso, 'outsider'), 'link_refused')
      assert.deepEqual((await app.with(squatter.key).get(pending)).body, [])
      const links = await app.database.sql`select 1 from sso_links`
      const members = await app.database.sql`
        select 1 from members where user_id = ${squatter.id} and organization_id = ${organizations.ours}`
      assert.deepEqual([links.length, members.length], [0, 0])
      await app.database.sql`delete from users where id = ${squatter.id}`
    }
  })
})

suite('an operator of this server', () => {
  test('single sign-on of an operator fails with link_refused, even if the operator was linked earlier', async () => {
    await using sso = await startSso(provider)
    const { sql } = sso.app.database
    const makeThem = (role: 'admin' | 'user') =>
      sql`update users set system_role = ${role} where id = ${userId('member')}`
    await makeThem('admin')
    assert.equal(await codeOf(sso, 'member'), 'link_refused')
    assert.equal((await sql`select 1 from sso_links`).length, 0)
    await makeThem('user')
    const id = await begin(sso)
    await makeThem('admin')
    assert.equal((await sso.app.as('member').post(`${pending}/${id}/confirm`)).status, 404)
    await makeThem('user')
    assert.equal((await sso.app.as('member').post(`${pending}/${id}/confirm`)).status, 204)
    assert.equal(await codeOf(sso, 'member'), 200)
    await makeThem('admin')
    assert.equal(await codeOf(sso, 'member'), 'link_refused')
  })
})

suite('when an SSO link between an account of the identity provider and a user is valid', () => {
  test('a confirmed SSO link is valid for one issuer: it signs nobody in after the provider’s issuer changes', async () => {
    await using other = await startProvider()
    await other.setAccounts({ member: { email: 'member@example.com', email_verified: true } })
    await using sso = await startSso(provider)
    await sso.app.as('member').post(`${pending}/${await begin(sso)}/confirm`)
    assert.equal(await codeOf(sso, 'member'), 200)
    await sso.change({ oidcConfig: { issuerUrl: other.issuer } })
    assert.equal(await codeOf(sso, 'member'), 'link_pending')
    await sso.change({ oidcConfig: { issuerUrl: provider.issuer } })
    assert.equal(await codeOf(sso, 'member'), 200)
  })

  test('an SSO link stays valid if the issuer’s URL gains or loses a slash at its end', async () => {
    await using sso = await startSso(provider)
    await sso.app.as('member').post(`${pending}/${await begin(sso)}/confirm`)
    await sso.change({ oidcConfig: { issuerUrl: `${provider.issuer}/` } })
    assert.equal(await codeOf(sso, 'member'), 200)
    // Older versions stored the issuer's URL exactly as a user had entered it.
    await sso.app.database.sql`update sso_links set issuer_url = issuer_url || '/'`
    await sso.change({ oidcConfig: { issuerUrl: provider.issuer } })
    assert.equal(await codeOf(sso, 'member'), 200)
  })

  test('deleting an identity provider deletes its SSO links to users, but the users stay members', async () => {
    await using sso = await startSso(provider)
    const { app } = sso
    const id = await begin(sso)
    const path = `/organizations/${organizations.ours}/identity-providers/${sso.providerId}`
    assert.equal((await app.as('owner').delete(path)).status, 204)
    assert.equal((await app.as('member').post(`${pending}/${id}/confirm`)).status, 404)
    assert.equal((await app.as('member').get('/users/me')).status, 200)
    const [row] = await app.database.sql<[{ count: number }]>`select count(*) from sso_links`
    assert.equal(row.count, 0)
  })

  test('an SSO link is valid for one account at the provider, not for another with the same e-mail address', async () => {
    await using sso = await startSso(provider)
    await sso.app.as('member').post(`${pending}/${await begin(sso)}/confirm`)
    await provider.setAccounts({ usurper: { email: 'member@example.com', email_verified: true } })
    assert.equal(await codeOf(sso, 'usurper'), 'link_pending')
    await provider.setAccounts({
      member: { email: 'Member@example.com', email_verified: true, name: 'Somebody' },
      outsider: { email: 'outsider@example.com', email_verified: true },
      ada: { email: 'ada@example.com', email_verified: true },
    })
  })
})
