import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { suite, test } from 'node:test'
import { readNetworks } from '#src/kit/networks.ts'
import { type ControlOptions, startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'

const providers = `/organizations/${organizations.ours}/identity-providers`

const start = async (options: ControlOptions = {}) => {
  const app = await startControl(options)
  await app.database.sql`update organizations set sso_enabled = true where not personal`
  return app
}

const serve = async (listener: RequestListener) => {
  const server = createServer(listener)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

suite('POST /organizations/{organizationId}/identity-providers/test-connection', () => {
  const loopback = { privateTargets: readNetworks('127.0.0.0/8')! }
  const ask = async (app: TestControl, issuerUrl: string) => {
    const reply = await app.as('owner').post(`${providers}/test-connection`, { issuerUrl })
    assert.equal(reply.status, 200, reply.text)
    return reply.body
  }

  const endpointsAt = (url: string) => ({
    authorization_endpoint: `${url}/auth`,
    token_endpoint: `${url}/token`,
    jwks_uri: `${url}/jwks`,
  })

  test('POST /organizations/{organizationId}/identity-providers/test-connection succeeds if the issuer has a valid discovery document', async () => {
    const asked: (string | undefined)[] = []
    await using server = await serve((request, response) => {
      asked.push(request.url)
      response.end(JSON.stringify({ issuer: `${server.url}/realm`, ...endpointsAt(server.url) }))
    })
    await using app = await start({ settings: loopback })
    for (const issuerUrl of [`${server.url}/realm`, `${server.url}/realm/`]) {
      assert.deepEqual(await ask(app, issuerUrl), { success: true, issuer: `${server.url}/realm` })
    }
    const path = '/realm/.well-known/openid-configuration'
    assert.deepEqual(asked, [path, path])
  })

  test('POST /organizations/{organizationId}/identity-providers/test-connection returns why a discovery document is unusable', async () => {
    let document: unknown
    let status = 200
    await using server = await serve((_request, response) => {
      response.writeHead(status).end(typeof document === 'string' ? document : JSON.stringify(document))
    })
    await using app = await start({ settings: loopback })
    const good = { issuer: server.url, ...endpointsAt(server.url) }
    const wrong: [unknown, RegExp][] = [
      ['<html>', /JSON/],
      [[], /JSON/],
      [{ ...good, issuer: undefined }, /issuer/],
      [{ ...good, issuer: 'https://login.example/{tenantid}/v2.0' }, /another issuer/],
      [{ ...good, authorization_endpoint: undefined }, /authorization_endpoint/],
      [{ ...good, authorization_endpoint: 'javascript:alert(1)' }, /authorization_endpoint/],
      [{ ...good, token_endpoint: 7 }, /token_endpoint/],
      [{ ...good, jwks_uri: '' }, /jwks_uri/],
      [{ ...good, token_endpoint_auth_methods_supported: ['private_key_jwt'] }, /client secret/],
      ['x'.repeat(300_000), /too large/],
    ]
    for (const [given, reason] of wrong) {
      document = given
      const answer = await ask(app, server.url)
      assert.deepEqual([answer.success, answer.issuer], [false, undefined])
      assert.match(answer.error, reason)
    }
    for (const refused of [404, 500, 302]) {
      status = refused
      document = good
      assert.match((await ask(app, server.url)).error, new RegExp(`status ${refused}`))
    }
  })

  test('POST /organizations/{organizationId}/identity-providers/test-connection never contacts a private address', async () => {
    let called = 0
    await using server = await serve((_request, response) => {
      called += 1
      response.end()
    })
    await using app = await start()
    for (const issuerUrl of [server.url, 'http://169.254.169.254/latest', 'https://[::1]', 'https://localhost']) {
      const { success, error } = await ask(app, issuerUrl)
      assert.equal(success, false)
      assert.match(error, /not on the public Internet/)
    }
    assert.equal(called, 0)
  })

  test('POST /organizations/{organizationId}/identity-providers/test-connection answers 400 for a bad URL, 403 without manage:sso', async () => {
    await using app = await start()
    const path = `${providers}/test-connection`
    for (const issuerUrl of ['', 'nope', 'file:///etc/passwd', undefined, 7]) {
      assert.equal((await app.as('owner').post(path, { issuerUrl })).status, 400)
    }
    assert.equal((await app.as('member').post(path, { issuerUrl: 'https://a.example' })).status, 403)
    assert.equal((await app.as('stranger').post(path, { issuerUrl: 'https://a.example' })).status, 404)
  })
})
