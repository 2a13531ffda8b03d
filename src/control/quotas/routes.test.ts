import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'

const { ours, theirs } = organizations

const quotaPath = (region?: string, organization: string = ours) =>
  `/organizations/${organization}/quota${region === undefined ? '' : `/${region}`}`

const setQuota = async (app: TestControl, body: object, region?: string) => {
  const reply = await app.as('admin').patch(quotaPath(region), body)
  assert.equal(reply.status, 204, reply.text)
}

const usage = async (app: TestControl) => (await app.as('viewer').get(`/organizations/${ours}/usage`)).body

const wrongNumbers = [-1, 1.5, 1e308, 2 ** 31, 2 ** 53, '5', true, [], {}, 'NaN']

suite('PATCH /organizations/{organizationId}/quota', () => {
  test('PATCH /organizations/{organizationId}/quota changes the given fields, and leaves absent and null fields unchanged', async () => {
    await using app = await startControl()
    const before = (await app.as('owner').get(`/organizations/${ours}`)).body
    const reply = await app.as('admin').patch(quotaPath(), {
      maxCpuPerSandbox: 2,
      maxMemoryPerSandbox: null,
      snapshotQuota: 7,
      authenticatedRateLimit: 100,
      authenticatedRateLimitTtlSeconds: 10,
      snapshotDeactivationTimeoutMinutes: 60,
      maxConcurrentSnapshotProcessing: -1,
      unknown: 'dropped',
    })
    assert.deepEqual([reply.status, reply.text], [204, ''])
    const { updatedAt: _, ...after } = (await app.as('owner').get(`/organizations/${ours}`)).body
    assert.deepEqual(
      { ...after, updatedAt: before.updatedAt },
      {
        ...before,
        maxCpuPerSandbox: 2,
        authenticatedRateLimit: 100,
        authenticatedRateLimitTtlSeconds: 10,
        snapshotDeactivationTimeoutMinutes: 60,
      },
    )
    assert.equal((await usage(app)).totalSnapshotQuota, 7)
    await setQuota(app, {})
    assert.equal((await usage(app)).totalSnapshotQuota, 7)
  })

  test('PATCH /organizations/{organizationId}/quota with 0 removes a rate limit of the organization; other limits become 0', async () => {
    await using app = await startControl()
    await setQuota(app, { sandboxCreateRateLimit: 5, maxDiskPerSandbox: 5 })
    await setQuota(app, { sandboxCreateRateLimit: 0, maxDiskPerSandbox: 0 })
    const { sandboxCreateRateLimit, maxDiskPerSandbox } = (await app.as('owner').get(`/organizations/${ours}`)).body
    assert.deepEqual([sandboxCreateRateLimit, maxDiskPerSandbox], [null, 0])
  })

  test('PATCH /organizations/{organizationId}/quota answers 400 for an invalid amount, and changes nothing', async () => {
    await using app = await startControl()
    for (const field of ['maxCpuPerSandbox', 'snapshotQuota', 'volumeQuota', 'authenticatedRateLimitTtlSeconds']) {
      for (const value of wrongNumbers) {
        const reply = await app.as('admin').patch(quotaPath(), { secretQuota: 1, [field]: value })
        assert.equal(reply.status, 400, `${field} ${JSON.stringify(value)}: ${reply.text}`)
      }
    }
    assert.equal((await app.as('admin').patch(quotaPath(), { authenticatedRateLimitTtlSeconds: 86_401 })).status, 400)
    for (const body of [[], 'x', 7]) assert.equal((await app.as('admin').patch(quotaPath(), body)).status, 400)
    assert.equal((await app.as('admin').send('PATCH', quotaPath(), '{"secretQuota":1e999}')).status, 400)
    assert.equal((await app.as('owner').get(`/organizations/${ours}`)).body.secretQuota, 1000)
  })

  test('PATCH /organizations/{organizationId}/quota answers 403 to users who are not operators, 404 for an unknown organization', async () => {
    await using app = await startControl()
    for (const who of ['owner', 'viewer', 'stranger'] as const) {
      for (const organization of [ours, theirs, 'no-such']) {
        assert.equal((await app.as(who).patch(quotaPath(undefined, organization), { secretQuota: 1 })).status, 403)
      }
    }
    assert.equal((await app.as('admin').patch(quotaPath(undefined, 'no-such'), { secretQuota: 1 })).status, 404)
    assert.equal((await app.as('nobody').patch(quotaPath(), {})).status, 401)
  })
})

suite('PATCH /organizations/{organizationId}/quota/{regionId}', () => {
  test('PATCH /organizations/{organizationId}/quota/{regionId} makes the quota of a region; later calls change only the given fields', async () => {
    await using app = await startControl()
    await setQuota(
      app,
      { totalCpuQuota: 10, totalDiskQuota: 30, maxCpuPerSandbox: 4, allowedGpuTypes: ['H100', 'H100'] },
      'local',
    )
    await setQuota(
      app,
      { totalCpuQuota: 12, totalDiskQuota: null, maxSandboxLifespan: 60, maxCpuPerSandbox: 0 },
      'local',
    )
    await setQuota(app, { sandboxClass: 'linux-vm', totalCpuQuota: 1 }, 'local')
    const [container, machine, ...more] = (await usage(app)).regionUsage
    assert.deepEqual(
      [container.sandboxClass, container.totalCpuQuota, container.totalDiskQuota, container.maxCpuPerSandbox],
      ['container', 12, 30, null],
    )
    assert.deepEqual(container.allowedGpuTypes, ['H100'])
    assert.deepEqual([machine.sandboxClass, machine.totalCpuQuota, more.length], ['linux-vm', 1, 0])
    assert.equal((await app.as('stranger').get(`/organizations/${theirs}/usage`)).body.regionUsage.length, 1)
  })

  test('PATCH /organizations/{organizationId}/quota/{regionId} answers 400 for an invalid amount, sandbox class or GPU', async () => {
    await using app = await startControl()
    const bodies = [
      ...wrongNumbers.map((totalCpuQuota) => ({ totalCpuQuota })),
      ...wrongNumbers.map((maxSandboxLifespan) => ({ maxSandboxLifespan })),
      { sandboxClass: 'box' },
      { sandboxClass: null },
      { allowedGpuTypes: ['A100'] },
      { allowedGpuTypes: 'H100' },
    ]
    for (const body of bodies) {
      assert.equal((await app.as('admin').patch(quotaPath('local'), body)).status, 400, JSON.stringify(body))
    }
  })

  test('PATCH /organizations/{organizationId}/quota/{regionId} answers 404 for another organization’s region, 403 to users who are not operators', async () => {
    await using app = await startControl()
    await app.database.sql`
      insert into regions (id, name, organization_id, region_type) values ('region-theirs', 'r', ${theirs}, 'custom')`
    const unknown = await app.as('admin').patch(quotaPath('no-such'), { totalCpuQuota: 1 })
    const foreign = await app.as('admin').patch(quotaPath('region-theirs'), { totalCpuQuota: 1 })
    assert.deepEqual([unknown.status, foreign.status], [404, 404])
    assert.equal(unknown.body.message, foreign.body.message)
    assert.equal((await app.as('admin').patch(quotaPath('region-theirs', theirs), { totalCpuQuota: 1 })).status, 204)
    assert.equal((await app.as('admin').patch(quotaPath('local', 'no-such'), { totalCpuQuota: 1 })).status, 404)
    assert.equal((await app.as('owner').patch(quotaPath('local'), { totalCpuQuota: 1 })).status, 403)
  })
})

suite('GET /organizations/{organizationId}/usage', () => {
  test('GET /organizations/{organizationId}/usage returns quota and usage for each region and sandbox class', async () => {
    await using app = await startControl({
      sandboxes: { createWaitSeconds: 20, overcommit: { cpu: 2, memory: 3, disk: 4 } },
    })
    await using _runner = await connectRunner(app)
    const created = await app.as('member').post('/sandbox', { cpu: 2, memory: 3, disk: 4 })
    assert.equal(created.status, 200, created.text)
    await app.as('member').post('/sandbox', {})
    const { regionUsage, ...counts } = await usage(app)
    assert.deepEqual(counts, {
      totalSnapshotQuota: 1000,
      currentSnapshotUsage: 0,
      totalVolumeQuota: 1000,
      currentVolumeUsage: 0,
    })
    // The organization has no quota in this region, so the fields `total…` show the capacity of the region's runner.
    assert.deepEqual(regionUsage, [
      {
        regionId: 'local',
        sandboxClass: 'container',
        totalCpuQuota: 8,
        currentCpuUsage: 3,
        totalMemoryQuota: 48,
        currentMemoryUsage: 4,
        totalDiskQuota: 400,
        currentDiskUsage: 7,
        totalGpuQuota: 0,
        currentGpuUsage: 0,
        maxCpuPerSandbox: null,
        maxMemoryPerSandbox: null,
        maxDiskPerSandbox: null,
        maxDiskPerNonEphemeralSandbox: null,
        maxCpuPerGpu: null,
        maxMemoryPerGpu: null,
        maxDiskPerGpu: null,
      },
    ])
    assert.equal(
      (await app.as('stranger').get(`/organizations/${theirs}/usage`)).body.regionUsage[0].currentCpuUsage,
      0,
    )
  })

  test('GET /organizations/{organizationId}/usage answers 401 without a credential, and 404 to strangers', async () => {
    await using app = await startControl()
    assert.equal((await app.as('nobody').get(`/organizations/${ours}/usage`)).status, 401)
    const [foreign, missing] = await Promise.all([
      app.as('stranger').get(`/organizations/${ours}/usage`),
      app.as('stranger').get('/organizations/no-such/usage'),
    ])
    assert.deepEqual([foreign.status, missing.status], [404, 404])
    assert.equal(foreign.body.message, missing.body.message)
  })
})

suite('GET /organizations/{organizationId}/available-sandbox-classes', () => {
  const classes = async (app: TestControl) =>
    (await app.as('viewer').get(`/organizations/${ours}/available-sandbox-classes`)).body

  test('GET /organizations/{organizationId}/available-sandbox-classes lists shared regions, own regions, and regions with a quota', async () => {
    await using app = await startControl()
    const local = { regionId: 'local', sandboxClass: 'container', gpuAvailable: false }
    assert.deepEqual(await classes(app), [local])
    await app.database.sql`
      insert into regions (id, name, organization_id, region_type, enforces_quota) values
        ('mine', 'm', ${ours}, 'custom', false), ('theirs', 't', ${theirs}, 'custom', false),
        ('given', 'g', null, 'dedicated', false), ('withheld', 'w', null, 'dedicated', false),
        ('strict', 's', null, 'shared', true)`
    await setQuota(app, { totalCpuQuota: 1, allowedGpuTypes: ['H200'] }, 'given')
    await setQuota(app, { sandboxClass: 'windows', totalCpuQuota: 1 }, 'local')
    const of = (regionId: string) => ({ ...local, regionId })
    assert.deepEqual(await classes(app), [of('mine'), { ...of('given'), allowedGpuTypes: ['H200'] }, local])
    await setQuota(app, { totalCpuQuota: 1 }, 'strict')
    assert.ok((await classes(app)).some(({ regionId }: { regionId: string }) => regionId === 'strict'))
  })

  test('GET /organizations/{organizationId}/available-sandbox-classes answers 401 without a credential, 404 to strangers', async () => {
    await using app = await startControl()
    const path = `/organizations/${ours}/available-sandbox-classes`
    assert.equal((await app.as('nobody').get(path)).status, 401)
    assert.equal((await app.as('stranger').get(path)).status, 404)
  })
})
