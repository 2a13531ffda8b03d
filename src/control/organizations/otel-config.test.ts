import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'

const { ours, theirs } = organizations
const path = `/organizations/${ours}/otel-config`
const config = { endpoint: 'https://otel.example.com/v1', headers: { 'x-api-key': 'open sesame', 'X-Tenant': 'seven' } }
const masked = { ...config, headers: { 'x-api-key': '******', 'X-Tenant': '******' } }

const asCollector = async (app: TestControl) => (await app.as('collector').get(path)).body

suite('PUT /organizations/{organizationId}/otel-config', () => {
  test('PUT /organizations/{organizationId}/otel-config encrypts the telemetry setting; only a collector can read the setting’s header values', async () => {
    await using app = await startControl()
    const put = await app.as('owner').put(path, config)
    assert.deepEqual([put.status, put.text], [204, ''])
    const [row] = await app.database.sql`select otel_config from organizations where id = ${ours}`
    assert.match(row?.['otel_config'], /^v1\./)
    assert.deepEqual((await app.as('owner').get(path)).body, masked)
    assert.deepEqual((await app.as('viewer').get(`/organizations/${ours}`)).body.otelConfig, masked)
    assert.deepEqual(await asCollector(app), config)
  })

  test('PUT /organizations/{organizationId}/otel-config keeps a stored header value if the body has asterisks instead of the value', async () => {
    await using app = await startControl()
    await app.as('owner').put(path, config)
    const headers = { 'X-Api-Key': '******', 'X-Tenant': 'eight', 'x-new': 'a*b' }
    assert.equal((await app.as('owner').put(path, { endpoint: 'http://10.0.0.1:4318', headers })).status, 204)
    assert.deepEqual(await asCollector(app), {
      endpoint: 'http://10.0.0.1:4318',
      headers: { 'X-Api-Key': 'open sesame', 'X-Tenant': 'eight', 'x-new': 'a*b' },
    })
    for (const body of [{ endpoint: config.endpoint }, { endpoint: config.endpoint, headers: null }]) {
      assert.equal((await app.as('owner').put(path, body)).status, 204)
      assert.deepEqual(await asCollector(app), { endpoint: config.endpoint, headers: null })
    }
  })

  test('PUT /organizations/{organizationId}/otel-config replaces a stored telemetry setting that cannot be decrypted', async () => {
    await using app = await startControl()
    await app.database.sql`update organizations set otel_config = 'v1.00000000.AAAA' where id = ${ours}`
    assert.equal((await app.as('owner').get(`/organizations/${ours}`)).body.otelConfig, null)
    assert.equal((await app.as('owner').put(path, config)).status, 204)
    assert.deepEqual(await asCollector(app), config)
  })

  test('PUT /organizations/{organizationId}/otel-config answers 400 for an invalid URL or header, or a masked header that is not stored', async () => {
    await using app = await startControl()
    const { endpoint } = config
    const bodies = [
      {},
      { endpoint: '' },
      { endpoint: 'otel.example.com' },
      { endpoint: 'ftp://otel.example.com' },
      { endpoint: 'http://169.254.169.254/' },
      { endpoint: 'https://user:pass@otel.example.com' },
      { endpoint: 5 },
      { endpoint, headers: [] },
      { endpoint, headers: 'x' },
      { endpoint, headers: { 'x-a': 5 } },
      { endpoint, headers: { 'x a': '1' } },
      { endpoint, headers: { '': '1' } },
      { endpoint, headers: { 'x-a': 'a\r\nb: c' } },
      { endpoint, headers: { 'x-a': '€' } },
      { endpoint, headers: { 'x-a': '1', 'X-A': '2' } },
      { endpoint, headers: { 'x-a': '***' } },
      { endpoint, headers: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`x-${n}`, '1'])) },
    ]
    for (const body of bodies) {
      assert.equal((await app.as('owner').put(path, body)).status, 400, JSON.stringify(body).slice(0, 100))
    }
    assert.equal((await app.as('owner').get(path)).status, 404)
  })

  test('PUT /organizations/{organizationId}/otel-config answers 403 to members, 401 to a telemetry collector and 404 to strangers', async () => {
    await using app = await startControl()
    assert.equal((await app.as('member').put(path, config)).status, 403)
    assert.equal((await app.as('collector').put(path, config)).status, 401)
    assert.equal((await app.as('stranger').put(path, config)).status, 404)
  })
})

suite('GET /organizations/{organizationId}/otel-config', () => {
  test('GET /organizations/{organizationId}/otel-config answers 404 if the organization is unknown or has no telemetry setting', async () => {
    await using app = await startControl()
    for (const who of ['owner', 'collector'] as const) assert.equal((await app.as(who).get(path)).status, 404)
    assert.equal((await app.as('collector').get('/organizations/no-such/otel-config')).status, 404)
  })

  test('GET /organizations/{organizationId}/otel-config answers 403 to members, 404 to strangers, 401 to collectors if no collector key is set', async () => {
    await using app = await startControl({ settings: { collectorKeyHash: undefined } })
    await app.as('owner').put(path, config)
    assert.equal((await app.as('member').get(path)).status, 403)
    assert.equal((await app.as('stranger').get(path)).status, 404)
    assert.equal((await app.as('collector').get(path)).status, 401)
  })

  test('if a stored telemetry setting is copied to another organization’s row, the copy cannot be decrypted', async () => {
    await using app = await startControl()
    await app.as('owner').put(path, config)
    await app.database.sql`
      update organizations set otel_config = (select otel_config from organizations where id = ${ours})
      where id = ${theirs}`
    const reply = await app.as('collector').get(`/organizations/${theirs}/otel-config`)
    assert.equal(reply.status, 500)
    assert.ok(!reply.text.includes('sesame'))
  })
})

suite('DELETE /organizations/{organizationId}/otel-config', () => {
  test('DELETE /organizations/{organizationId}/otel-config answers 204 whether or not there is a telemetry setting', async () => {
    await using app = await startControl()
    await app.as('owner').put(path, config)
    for (const _ of [1, 2]) assert.equal((await app.as('owner').delete(path)).status, 204)
    assert.equal((await app.as('owner').get(path)).status, 404)
    assert.equal((await app.as('member').delete(path)).status, 403)
    assert.equal((await app.as('stranger').delete(path)).status, 404)
  })
})

suite('GET /organizations/otel-config/by-sandbox-auth-token/{authToken}', () => {
  test('GET /organizations/otel-config/by-sandbox-auth-token/{authToken} returns the telemetry setting of the sandbox’s organization', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using _runner = await connectRunner(app)
    await app.as('owner').put(path, config)
    const { id } = (await app.as('member').post('/sandbox', {})).body
    const [row] = await app.database.sql`select preview_token from sandboxes where id = ${id}`
    const at = `/organizations/otel-config/by-sandbox-auth-token/${row?.['preview_token']}`
    const reply = await app.as('collector').get(at)
    assert.deepEqual([reply.status, reply.body], [200, { organizationId: ours, ...config }])
    for (const who of ['owner', 'admin'] as const) assert.equal((await app.as(who).get(at)).status, 403)
    await app.as('owner').delete(path)
    assert.equal((await app.as('collector').get(at)).status, 404)
    await app.as('owner').put(path, config)
    await app.as('owner').delete(`/sandbox/${id}`)
    await app.database.sql`update sandboxes set state = 'destroyed' where id = ${id}`
    assert.equal((await app.as('collector').get(at)).status, 404)
  })

  test('GET /organizations/otel-config/by-sandbox-auth-token/{authToken} answers 404 for an unknown token, and 401 without a telemetry collector’s key', async () => {
    await using app = await startControl()
    const at = '/organizations/otel-config/by-sandbox-auth-token/no-such'
    assert.equal((await app.as('collector').get(at)).status, 404)
    for (const who of ['nobody', 'proxy', 'runner'] as const) assert.equal((await app.as(who).get(at)).status, 401)
  })
})
