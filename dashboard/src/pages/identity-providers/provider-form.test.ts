import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { bodyOf, changeOf, emptyForm, formOf, issuerOf, isUnfinished, type Provider } from './provider-form.ts'

const provider: Provider = {
  id: 'p',
  organizationId: 'o',
  name: 'Example',
  oidcConfig: { issuerUrl: 'https://id.example.com', clientId: 'alcove', scope: 'openid email' },
  emailDomains: ['example.com'],
  allowAnyDomain: false,
  trustEmailVerified: false,
  defaultAssignedRoleIds: ['r'],
  enabled: true,
  createdAt: '2026-11-26T12:00:00Z',
  updatedAt: '2026-11-26T12:00:00Z',
}

suite('the form of an identity provider', () => {
  test('`issuerOf` fills the placeholders of an issuer URL; `isUnfinished` is true if a placeholder is left', () => {
    const template = { issuerUrl: 'https://{host}/realms/{realm}' }
    assert.equal(issuerOf(template, { host: ' id.example.com ' }), 'https://id.example.com/realms/{realm}')
    assert.equal(isUnfinished(issuerOf(template, { host: 'id.example.com' })), true)
    assert.equal(isUnfinished(issuerOf(template, { host: 'id.example.com', realm: 'ours' })), false)
    assert.equal(isUnfinished(' '), true)
  })

  test('the unchanged form of a sign-in provider changes nothing; an empty secret keeps the stored secret', () => {
    assert.deepEqual(changeOf(provider, formOf(provider)), {})
    assert.deepEqual(changeOf(provider, { ...formOf(provider), name: 'Other' }), { name: 'Other' })
    assert.deepEqual(changeOf(provider, { ...formOf(provider), clientSecret: 's', enabled: false }), {
      ...{ enabled: false, oidcConfig: { clientSecret: 's' } },
    })
  })

  test('the form of a sign-in provider splits its list of domains at spaces, commas and line ends', () => {
    assert.deepEqual(bodyOf({ ...emptyForm, domains: 'a.example, b.example\n\nc.example ' }).emailDomains, [
      ...['a.example', 'b.example', 'c.example'],
    ])
  })
})
