import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { organizations, userId } from '#test/control/people.ts'

const { ours, theirs } = organizations

suite('GET /organizations', () => {
  test('GET /organizations returns to an API key only the key’s organization', async () => {
    await using app = await startControl()
    const reply = await app.as('member').get('/organizations')
    assert.deepEqual([reply.status, reply.body.map(({ id }: { id: string }) => id)], [200, [ours]])
  })

  test('GET /organizations answers 401 without a credential', async () => {
    await using app = await startControl()
    assert.equal((await app.as('nobody').get('/organizations')).status, 401)
  })
})

suite('GET /organizations/{organizationId}', () => {
  test('GET /organizations/{organizationId} returns all fields that clients expect', async () => {
    await using app = await startControl()
    const reply = await app.as('member').get(`/organizations/${ours}`)
    assert.equal(reply.status, 200)
    const { createdAt, updatedAt, maxCpuPerSandbox, maxMemoryPerSandbox, maxDiskPerSandbox, ...rest } = reply.body
    for (const date of [createdAt, updatedAt]) assert.equal(new Date(date).toISOString(), date)
    for (const limit of [maxCpuPerSandbox, maxMemoryPerSandbox, maxDiskPerSandbox]) assert.ok(limit > 0)
    assert.deepEqual(rest, {
      id: ours,
      name: 'ours',
      createdBy: userId('owner'),
      personal: false,
      defaultRegionId: 'local',
      suspended: false,
      suspendedAt: null,
      suspendedUntil: null,
      suspensionReason: null,
      suspensionCleanupGracePeriodHours: 24,
      secretQuota: 1000,
      maxSecretsPerSandbox: 100,
      snapshotDeactivationTimeoutMinutes: 20160,
      sandboxLimitedNetworkEgress: false,
      previewWarningEnabled: false,
      ssoEnabled: false,
      authenticatedRateLimit: null,
      authenticatedRateLimitTtlSeconds: null,
      sandboxCreateRateLimit: null,
      sandboxCreateRateLimitTtlSeconds: null,
      sandboxLifecycleRateLimit: null,
      sandboxLifecycleRateLimitTtlSeconds: null,
      experimentalConfig: null,
      otelConfig: null,
    })
  })

  test('GET /organizations/{organizationId} shows a suspension only until it ends', async () => {
    await using app = await startControl()
    const until = new Date(app.clock.now().getTime() + 60_000)
    await app.database.sql`
      update organizations set suspended = true, suspended_at = ${app.clock.now()}, suspended_until = ${until},
             suspension_reason = 'unpaid' where id = ${ours}`
    const during = (await app.as('owner').get(`/organizations/${ours}`)).body
    assert.deepEqual(
      [during.suspended, during.suspendedUntil, during.suspensionReason],
      [true, until.toISOString(), 'unpaid'],
    )
    app.clock.advance({ seconds: 60 })
    const afterwards = (await app.as('owner').get(`/organizations/${ours}`)).body
    assert.deepEqual(
      [afterwards.suspended, afterwards.suspendedAt, afterwards.suspendedUntil, afterwards.suspensionReason],
      [false, null, null, null],
    )
  })

  test('GET /organizations/{organizationId} answers the same 404 for another organization and for an unknown organization', async () => {
    await using app = await startControl()
    const [foreign, missing] = await Promise.all([
      app.as('owner').get(`/organizations/${theirs}`),
      app.as('owner').get('/organizations/no-such'),
    ])
    assert.deepEqual([foreign.status, missing.status], [404, 404])
    assert.equal(foreign.body.message, missing.body.message)
  })

  test('GET /organizations/{organizationId} returns the organization in the path, even if a header names another organization', async () => {
    await using app = await startControl()
    const reply = await app.as('owner').get(`/organizations/${ours}`, {
      headers: { 'X-Daytona-Organization-ID': theirs },
    })
    assert.deepEqual([reply.status, reply.body.id], [200, ours])
  })
})
