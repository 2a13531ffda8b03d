import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readChallenges, trustedRealm } from './registry-realm.ts'

suite('challenges in the answers of a registry', () => {
  test('`readChallenges` reads all challenges of a `WWW-Authenticate` header, with or without quotes', () => {
    const read = readChallenges('Basic realm="a, \\"b\\"", Bearer Realm="https://a.example/token",service=tokens')
    assert.deepEqual(
      read.map(({ scheme, parameters }) => [scheme, { ...parameters }]),
      [
        ['basic', { realm: 'a, "b"' }],
        ['bearer', { realm: 'https://a.example/token', service: 'tokens' }],
      ],
    )
    assert.deepEqual(readChallenges('realm="no scheme"'), [])
    assert.equal(readChallenges(`Bearer ${'a="'.repeat(100_000)}`)[0]?.scheme, 'bearer')
  })
})

suite('where a registry’s password may be sent', () => {
  const trusted = (registry: string, realm: string, isPlain = false) =>
    trustedRealm(registry, realm, isPlain) !== undefined

  test('a registry’s password may go over HTTPS to a token server on the registry’s host or in its domain', () => {
    for (const [registry, realm] of [
      ['ghcr.io', 'https://ghcr.io/token'],
      ['docker.io', 'https://auth.docker.io/token'],
      ['registry.gitlab.com', 'https://gitlab.com/jwt/auth'],
      ['registry.example.co.uk', 'https://git.example.co.uk/jwt/auth'],
      ['registry.example.com:5000', 'https://auth.example.com:8443/token?x=1'],
      ['198.51.100.7:5000', 'https://198.51.100.7:5001/token'],
    ] as const)
      assert.ok(trusted(registry, realm), realm)
  })

  test('a registry’s password never goes to a foreign token server, or to a token server without TLS', () => {
    for (const [registry, realm] of [
      ['ghcr.io', 'https://evil.example/token'],
      ['ghcr.io', 'https://ghcr.io.evil.example/token'],
      ['ghcr.io', 'https://ghcr.io@evil.example/token'],
      ['ghcr.io', 'http://ghcr.io/token'],
      ['docker.io', 'https://evil.docker.io/token'],
      ['docker.io', 'https://auth.docker.io:8443/token'],
      ['registry.example.co.uk', 'https://evil.co.uk/token'],
      ['198.51.100.7:5000', 'https://198.51.100.8/token'],
      ['ghcr.io', 'file:///etc/passwd'],
      ['ghcr.io', '/token'],
      ['ghcr.io', ''],
    ] as const)
      assert.ok(!trusted(registry, realm), realm)
  })

  test('a registry without TLS may have a token server without TLS, but only on its own host', () => {
    assert.ok(trusted('127.0.0.1:5000', 'http://127.0.0.1:5001/token', true))
    assert.ok(!trusted('127.0.0.1:5000', 'http://127.0.0.2:5001/token', true))
    assert.ok(!trusted('a.example:5000', 'http://b.example:5000/token', true))
    assert.ok(!trusted('127.0.0.1:5000', 'http://127.0.0.1:5001/token'))
  })
})
