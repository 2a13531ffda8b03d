import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { addPerson } from '#test/control/add-person.ts'
import { type ControlOptions, startControl, type TestControl } from '#test/control/harness.ts'
import { organizations, userId } from '#test/control/people.ts'
import { secretPurpose } from './identity-provider.ts'

const pathOf = (organizationId: string) => `/organizations/${organizationId}/identity-providers`
const providers = pathOf(organizations.ours)
const developer = '00000000-0000-0000-0000-000000000001'
const superAdmin = '00000000-0000-0000-0000-000000000005'
const ssoAdmin = '00000000-0000-0000-0000-000000000009'

const oidcConfig = { issuerUrl: 'https://id.example.com/realms/ours', clientId: 'alcove', clientSecret: 'very-secret' }
const body = { name: 'Example', oidcConfig, emailDomains: ['example.com'] }

const enableSso = async (app: TestControl) => {
  await app.database.sql`update organizations set sso_enabled = true where not personal`
}

const start = async (options: ControlOptions = {}) => {
  const app = await startControl(options)
  await enableSso(app)
  return app
}

const create = async (app: TestControl, more: object = {}): Promise<{ id: string }> => {
  const reply = await app.as('owner').post(providers, { ...body, ...more })
  assert.equal(reply.status, 201, reply.text)
  return reply.body
}

suite('POST /organizations/{organizationId}/identity-providers', () => {
  test('POST /organizations/{organizationId}/identity-providers returns all fields but the secret, and default values for absent fields', async () => {
    await using app = await start()
    const reply = await app.as('owner').post(providers, body)
    assert.equal(reply.status, 201)
    const { id, createdAt, updatedAt, ...plain } = reply.body
    assert.match(id, /^[0-9a-f-]{36}$/)
    assert.equal(createdAt, updatedAt)
    assert.deepEqual(plain, {
      organizationId: organizations.ours,
      name: 'Example',
      oidcConfig: { issuerUrl: oidcConfig.issuerUrl, clientId: 'alcove', scope: 'openid email profile' },
      emailDomains: ['example.com'],
      allowAnyDomain: false,
      trustEmailVerified: false,
      defaultAssignedRoleIds: [],
      enabled: true,
    })
  })

  test('POST /organizations/{organizationId}/identity-providers accepts the body that the guide for operators shows', async () => {
    await using app = await start()
    const guide = readFileSync(join(import.meta.dirname, '../../../docs/guides/day-two.md'), 'utf8')
    const [, shown] = /```json\n([\s\S]*?)```/.exec(guide) ?? []
    assert.ok(shown)
    assert.equal((await app.as('owner').post(providers, JSON.parse(shown))).status, 201)
  })

  test('an identity provider’s secret is encrypted in the database, and no reply contains it', async () => {
    await using app = await start()
    const { id } = await create(app)
    const [row] = await app.database.sql<[{ client_secret: string }]>`select client_secret from identity_providers`
    assert.ok(!row.client_secret.includes(oidcConfig.clientSecret))
    assert.equal(app.parts.encryption.decrypt(secretPurpose({ id }), row.client_secret), oidcConfig.clientSecret)
    for (const path of [providers, `${providers}/${id}`]) {
      assert.doesNotMatch((await app.as('owner').get(path)).text, /very-secret|clientSecret/)
    }
  })

  test('an identity provider needs a domain, unless it allows any domain', async () => {
    await using app = await start()
    for (const more of [
      { emailDomains: [] },
      { emailDomains: undefined },
      { emailDomains: [], allowAnyDomain: false },
    ]) {
      assert.equal((await app.as('owner').post(providers, { ...body, ...more })).status, 400)
    }
    const reply = await app.as('owner').post(providers, { ...body, emailDomains: undefined, allowAnyDomain: true })
    assert.deepEqual([reply.status, reply.body.emailDomains, reply.body.allowAnyDomain], [201, [], true])
  })

  test('domains of an identity provider are stored trimmed, in lower case, as ASCII and without duplicates', async () => {
    await using app = await start()
    await addPerson(app, { email: 'a@BÜCHER.example' })
    const emailDomains = [' Example.COM ', 'example.com', 'bücher.example']
    const reply = await app.as('owner').post(providers, { ...body, emailDomains })
    assert.deepEqual(reply.body.emailDomains, ['example.com', 'xn--bcher-kva.example'])
  })

  test('POST /organizations/{organizationId}/identity-providers answers 400 for an invalid domain', async () => {
    await using app = await start()
    for (const domain of [
      '',
      'example',
      '@example.com',
      'a@example.com',
      'example.com.',
      '.example.com',
      'a b.com',
      '127.0.0.1',
      'example.com/x',
      '*.example.com',
      `${'a'.repeat(64)}.com`,
      'exa_mple.com',
      'example.com:80',
      'x%2e.com',
    ]) {
      const reply = await app.as('owner').post(providers, { ...body, emailDomains: [domain] })
      assert.equal(reply.status, 400, domain)
    }
    assert.deepEqual((await app.as('owner').get(providers)).body, [])
  })

  test('POST /organizations/{organizationId}/identity-providers answers 400 for an invalid issuer, client or scope', async () => {
    await using app = await start()
    const wrong = [
      { issuerUrl: 'id.example.com' },
      { issuerUrl: 'ftp://id.example.com' },
      { issuerUrl: 'https://user:pass@id.example.com' },
      { issuerUrl: 'https://id.example.com?tenant=a' },
      { issuerUrl: 'https://id.example.com#a' },
      { issuerUrl: '' },
      { issuerUrl: undefined },
      { clientId: '' },
      { clientId: undefined },
      { clientSecret: '' },
      { clientSecret: undefined },
      { clientSecret: 7 },
      { scope: 'email profile' },
      { scope: 'openid "quoted"' },
      { scope: '' },
    ]
    for (const more of wrong) {
      const reply = await app.as('owner').post(providers, { ...body, oidcConfig: { ...oidcConfig, ...more } })
      assert.equal(reply.status, 400, JSON.stringify(more))
      assert.doesNotMatch(reply.text, /very-secret/)
    }
    for (const name of ['', ' ', '<b>x</b>', undefined]) {
      assert.equal((await app.as('owner').post(providers, { ...body, name })).status, 400)
    }
    assert.equal((await app.as('owner').post(providers, { ...body, oidcConfig: undefined })).status, 400)
  })

  test('POST /organizations/{organizationId}/identity-providers answers 403 without manage:sso, and 201 to SSO Admins', async () => {
    await using app = await start()
    for (const who of ['member', 'viewer'] as const) {
      const reply = await app.as(who).post(providers, body)
      assert.equal(reply.status, 403)
      assert.match(reply.body.message, /manage:sso/)
    }
    const admin = await addPerson(app, { roleIds: [ssoAdmin], permissions: ['manage:sso'] })
    assert.equal((await app.with(admin.key).post(providers, body)).status, 201)
  })

  test('all six endpoints for identity providers answer 403 while single sign-on is not enabled', async () => {
    await using app = await startControl()
    const calls = [
      app.as('owner').post(providers, body),
      app.as('owner').get(providers),
      app.as('owner').get(`${providers}/some`),
      app.as('owner').patch(`${providers}/some`, {}),
      app.as('owner').delete(`${providers}/some`),
      app.as('owner').post(`${providers}/test-connection`, { issuerUrl: oidcConfig.issuerUrl }),
    ]
    assert.deepEqual(
      (await Promise.all(calls)).map(({ status }) => status),
      [403, 403, 403, 403, 403, 403],
    )
  })

  test('a personal organization gets 403 for identity providers, even if the setting `ssoForAll` is on', async () => {
    await using app = await startControl({ settings: { ssoForAll: true } })
    const [own] = await app.database.sql<[{ id: string }]>`select id from organizations where personal limit 1`
    assert.equal((await app.as('admin').get(pathOf(own.id))).status, 403)
    assert.equal((await app.as('owner').get(providers)).status, 200)
  })

  test('POST /organizations/{organizationId}/identity-providers answers 404 to strangers', async () => {
    await using app = await start()
    assert.equal((await app.as('stranger').post(providers, body)).status, 404)
  })

  test('POST /organizations/{organizationId}/identity-providers answers 403 for the 21st provider of an organization', async () => {
    await using app = await start()
    const more = { ...body, emailDomains: [], allowAnyDomain: true }
    for (let made = 0; made < 20; made += 1) assert.equal((await app.as('owner').post(providers, more)).status, 201)
    assert.equal((await app.as('owner').post(providers, more)).status, 403)
  })
})

suite('the domains of an identity provider', () => {
  const theirs = pathOf(organizations.theirs)

  test('an identity provider is refused (409) if another provider of the server has one of its domains', async () => {
    await using app = await start()
    await create(app)
    for (const [who, path] of [
      ['owner', providers],
      ['stranger', theirs],
    ] as const) {
      const reply = await app.as(who).post(path, body)
      assert.deepEqual([reply.status, reply.body.code], [409, 'IDENTITY_PROVIDER_DOMAIN_TAKEN'])
    }
    assert.deepEqual((await app.as('stranger').get(theirs)).body, [])
  })

  test('if twenty calls create a provider with the same two domains at the same time, one succeeds', async () => {
    await using app = await start()
    await addPerson(app, { email: 'a@second.example' })
    await addPerson(app, { email: 'b@second.example', organizationId: organizations.theirs })
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, index) => {
        const emailDomains = index % 4 < 2 ? ['example.com', 'second.example'] : ['second.example', 'example.com']
        const [who, path] = index % 2 === 0 ? (['owner', providers] as const) : (['stranger', theirs] as const)
        return app.as(who).post(path, { ...body, emailDomains })
      }),
    )
    const statuses = replies.map(({ status }) => status).sort()
    assert.deepEqual(statuses, [201, ...Array.from({ length: 19 }, () => 409)])
  })

  test('an identity provider is refused (400) if no member has a verified address in one of its domains', async () => {
    await using app = await start()
    await addPerson(app, { email: 'a@theirs.example', organizationId: organizations.theirs })
    await addPerson(app, { email: 'b@unproven.example', emailVerified: false })
    for (const domain of ['elsewhere.example', 'theirs.example', 'unproven.example', 'sub.example.com']) {
      const reply = await app.as('owner').post(providers, { ...body, emailDomains: ['example.com', domain] })
      assert.deepEqual([reply.status, reply.body.code], [400, 'IDENTITY_PROVIDER_DOMAIN_UNVERIFIED'], domain)
    }
    await addPerson(app, { email: 'c@Proven.example' })
    await create(app, { emailDomains: ['proven.example'] })
  })

  test('a provider’s domain is refused (400) if only single sign-on verified a member’s address in it', async () => {
    await using app = await start()
    const { id } = await addPerson(app, { email: 'a@sso.example' })
    await app.database.sql`update users set email_verified_by = 'sso' where id = ${id}`
    const reply = await app.as('owner').post(providers, { ...body, emailDomains: ['sso.example'] })
    assert.deepEqual([reply.status, reply.body.code], [400, 'IDENTITY_PROVIDER_DOMAIN_UNVERIFIED'])
  })

  test('a domain becomes free if its provider is deleted or loses it, but not if the provider is disabled', async () => {
    await using app = await start()
    const { id } = await create(app)
    const claim = async () => (await app.as('stranger').post(theirs, body)).status
    assert.equal((await app.as('owner').patch(`${providers}/${id}`, { enabled: false })).status, 200)
    assert.equal(await claim(), 409)
    const given = await app.as('owner').patch(`${providers}/${id}`, { allowAnyDomain: true, emailDomains: [] })
    assert.deepEqual([given.status, given.body.emailDomains], [200, []])
    assert.equal(await claim(), 201)
    const [{ id: other }] = (await app.as('stranger').get(theirs)).body
    assert.equal((await app.as('owner').patch(`${providers}/${id}`, { emailDomains: ['example.com'] })).status, 409)
    assert.equal((await app.as('stranger').delete(`${theirs}/${other}`)).status, 204)
    assert.equal((await app.as('owner').patch(`${providers}/${id}`, { emailDomains: ['example.com'] })).status, 200)
  })
})

suite('the default roles of an identity provider', () => {
  test('default roles of an identity provider must be global or of its organization; other roles answer 400', async () => {
    await using app = await start()
    const role = { name: 'Own', description: 'x', permissions: ['write:sandboxes'] }
    const own = (await app.as('owner').post(`/organizations/${organizations.ours}/roles`, role)).body.id
    const foreign = (await app.as('stranger').post(`/organizations/${organizations.theirs}/roles`, role)).body.id
    for (const id of [foreign, 'no-such']) {
      const reply = await app.as('owner').post(providers, { ...body, defaultAssignedRoleIds: [developer, id] })
      assert.equal(reply.status, 400, id)
    }
    const { id } = await create(app, { defaultAssignedRoleIds: [own, developer, own] })
    const kept = async () => (await app.as('owner').get(`${providers}/${id}`)).body.defaultAssignedRoleIds
    assert.deepEqual(new Set(await kept()), new Set([own, developer]))
    // When a role is deleted, it is removed from the default roles of the provider, so new users do not get the role.
    await app.as('owner').delete(`/organizations/${organizations.ours}/roles/${own}`)
    assert.deepEqual(await kept(), [developer])
  })

  test('a caller gets 403 for a provider change that could give people permissions that the caller lacks', async () => {
    await using app = await start()
    const admin = app.with((await addPerson(app, { roleIds: [ssoAdmin], permissions: ['manage:sso'] })).key)
    const more = { ...body, defaultAssignedRoleIds: [superAdmin] }
    assert.equal((await admin.post(providers, more)).status, 403)
    const { id } = await create(app, { defaultAssignedRoleIds: [superAdmin] })
    const path = `${providers}/${id}`
    for (const change of [
      { oidcConfig: { issuerUrl: 'https://evil.example' } },
      { oidcConfig: { clientSecret: 'mine' } },
      { allowAnyDomain: true },
      { trustEmailVerified: true },
      { enabled: true },
      { defaultAssignedRoleIds: [developer] },
    ]) {
      assert.equal((await admin.patch(path, change)).status, 403, JSON.stringify(change))
    }
    assert.equal((await admin.patch(path, { name: 'Renamed', enabled: false })).status, 200)
    assert.equal((await admin.patch(path, { defaultAssignedRoleIds: [] })).status, 200)
  })
})

suite('GET /organizations/{organizationId}/identity-providers, GET /organizations/{organizationId}/identity-providers/{id}', () => {
  test('GET /organizations/{organizationId}/identity-providers lists an organization’s providers, oldest first', async () => {
    await using app = await start()
    const first = await create(app)
    app.clock.advance({ seconds: 1 })
    const second = await create(app, { name: 'Second', emailDomains: [], allowAnyDomain: true })
    await app.as('stranger').post(pathOf(organizations.theirs), { ...body, emailDomains: [], allowAnyDomain: true })
    assert.deepEqual((await app.as('owner').get(providers)).body, [first, second])
    assert.deepEqual((await app.as('owner').get(`${providers}/${second.id}`)).body, second)
  })

  test('GET /organizations/{organizationId}/identity-providers/{id} answers 404 for another organization’s provider, 403 without manage:sso', async () => {
    await using app = await start()
    const { id } = await create(app)
    const theirs = pathOf(organizations.theirs)
    assert.equal((await app.as('stranger').get(`${theirs}/${id}`)).status, 404)
    assert.equal((await app.as('owner').get(`${providers}/no-such`)).status, 404)
    assert.equal((await app.as('stranger').get(`${providers}/${id}`)).status, 404)
    assert.equal((await app.as('member').get(`${providers}/${id}`)).status, 403)
    assert.equal((await app.as('member').get(providers)).status, 403)
  })
})

suite('PATCH /organizations/{organizationId}/identity-providers/{id}', () => {
  test('PATCH /organizations/{organizationId}/identity-providers/{id} changes only the given fields, and keeps the secret', async () => {
    await using app = await start()
    const before = await create(app, { defaultAssignedRoleIds: [developer] })
    app.clock.advance({ seconds: 5 })
    const path = `${providers}/${before.id}`
    assert.deepEqual((await app.as('owner').get(path)).body, before)
    const reply = await app.as('owner').patch(path, { oidcConfig: { clientId: 'other' } })
    const { updatedAt, ...plain } = reply.body
    const { updatedAt: was, ...beforePlain } = before as Record<string, unknown>
    assert.notEqual(updatedAt, was)
    assert.deepEqual(plain, {
      ...beforePlain,
      oidcConfig: { issuerUrl: oidcConfig.issuerUrl, clientId: 'other', scope: 'openid email profile' },
    })
    const secret = async () => {
      const [row] = await app.database.sql<[{ client_secret: string }]>`select client_secret from identity_providers`
      return app.parts.encryption.decrypt(secretPurpose(before), row.client_secret)
    }
    assert.equal(await secret(), 'very-secret')
    await app.as('owner').patch(path, { oidcConfig: { clientSecret: 'replaced' } })
    assert.equal(await secret(), 'replaced')
    assert.deepEqual((await app.as('owner').get(path)).body.defaultAssignedRoleIds, [developer])
  })

  test('PATCH /organizations/{organizationId}/identity-providers/{id} answers 400 for an invalid field, or if no domain would be left', async () => {
    await using app = await start()
    const { id } = await create(app)
    const path = `${providers}/${id}`
    for (const change of [
      { emailDomains: [] },
      { emailDomains: ['nope'] },
      { name: '' },
      { enabled: 'yes' },
      { oidcConfig: { issuerUrl: 'x' } },
      { oidcConfig: { scope: 'email' } },
      { oidcConfig: null },
    ]) {
      assert.equal((await app.as('owner').patch(path, change)).status, 400, JSON.stringify(change))
    }
    await app.as('owner').patch(path, { allowAnyDomain: true, emailDomains: [] })
    assert.equal((await app.as('owner').patch(path, { allowAnyDomain: false })).status, 400)
  })

  test('PATCH /organizations/{organizationId}/identity-providers/{id} answers 404 for another organization’s provider, and changes nothing', async () => {
    await using app = await start()
    const { id } = await create(app)
    assert.equal((await app.as('stranger').patch(`${pathOf(organizations.theirs)}/${id}`, { name: 'x' })).status, 404)
    assert.equal((await app.as('stranger').patch(`${providers}/${id}`, { name: 'x' })).status, 404)
    assert.equal((await app.as('owner').get(`${providers}/${id}`)).body.name, 'Example')
  })
})

suite('DELETE /organizations/{organizationId}/identity-providers/{id}', () => {
  test('DELETE /organizations/{organizationId}/identity-providers/{id} deletes a provider; users who joined through it stay', async () => {
    await using app = await start()
    const { id } = await create(app)
    assert.equal((await app.as('stranger').delete(`${pathOf(organizations.theirs)}/${id}`)).status, 404)
    assert.equal((await app.as('member').delete(`${providers}/${id}`)).status, 403)
    const reply = await app.as('owner').delete(`${providers}/${id}`)
    assert.deepEqual([reply.status, reply.text], [204, ''])
    assert.equal((await app.as('owner').delete(`${providers}/${id}`)).status, 404)
    assert.equal((await app.as('owner').get(`/organizations/${organizations.ours}/users`)).body.length, 3)
    assert.ok(userId('member'))
  })
})

suite('GET /organizations/{organizationId}/identity-providers/templates', () => {
  test('GET /organizations/{organizationId}/identity-providers/templates returns seven templates with their placeholders', async () => {
    await using app = await start()
    const reply = await app.as('owner').get(`${providers}/templates`)
    assert.equal(reply.status, 200)
    assert.equal(reply.body.length, 7)
    for (const { issuerUrl, placeholders, scope } of reply.body) {
      const words = [...issuerUrl.matchAll(/\{(\w+)\}/g)].map(([, word]) => word)
      assert.deepEqual(words, Object.keys(placeholders))
      assert.equal(scope, 'openid email profile')
    }
    assert.equal((await app.as('member').get(`${providers}/templates`)).status, 403)
  })
})
