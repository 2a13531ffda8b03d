import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'

suite('GET /config', () => {
  test('GET /config returns the addresses of this server to every caller', async () => {
    await using app = await startControl()
    const reply = await app.as('nobody').get('/config')
    assert.equal(reply.status, 200)
    assert.deepEqual(reply.body, {
      version: '0.0.0-test',
      oidc: { issuer: app.issuer.url, clientId: 'alcove', audience: 'alcove' },
      linkedAccountsEnabled: true,
      announcements: {},
      proxyTemplateUrl: 'http://{{PORT}}-{{sandboxId}}.proxy.test:3001',
      proxyToolboxUrl: 'http://proxy.test:3001/toolbox',
      defaultSnapshot: 'default',
      dashboardUrl: 'http://control.test:3000/dashboard/',
      maxAutoArchiveInterval: 43_200,
      maintananceMode: false,
      environment: 'test',
      sshGatewayCommand: 'ssh -p 3002 {{TOKEN}}@ssh.test',
      sshGatewayPublicKey: Buffer.from('ssh-ed25519 AAAA').toString('base64'),
    })
  })

  test('GET /config returns the rate limits that an operator has set', async () => {
    const rateLimits = {
      'failed-auth': { limit: 5, ttlSeconds: 60 },
      'sandbox-create': { limit: 9, ttlSeconds: 10 },
      anonymous: { limit: 99, ttlSeconds: 1 },
    }
    await using app = await startControl({ settings: { rateLimits } })
    const { rateLimit } = (await app.as('nobody').get('/config')).body
    assert.deepEqual(rateLimit, { failedAuth: { ttl: 60, limit: 5 }, sandboxCreate: { ttl: 10, limit: 9 } })
  })

  test('GET /config answers 200 even with an invalid credential', async () => {
    await using app = await startControl()
    assert.equal((await app.with('nonsense').get('/config')).status, 200)
  })
})
