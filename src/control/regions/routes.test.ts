import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'

const idsOf = (regions: { id: string }[]) => regions.map(({ id }) => id)

const addRegions = async ({ database: { sql } }: TestControl) => {
  await sql`
    insert into regions (id, name, organization_id, region_type, proxy_url) values
      ('ours_1', 'cellar', ${organizations.ours}, 'custom', 'https://proxy.example.com'),
      ('theirs_1', 'cellar', ${organizations.theirs}, 'custom', null),
      ('gold', 'gold', null, 'dedicated', null)`
}

suite('GET /shared-regions', () => {
  test('GET /shared-regions returns only the shared regions, to every caller', async () => {
    await using app = await startControl()
    await addRegions(app)
    const reply = await app.as('nobody').get('/shared-regions')
    assert.equal(reply.status, 200)
    assert.deepEqual(idsOf(reply.body), ['local'])
    const { createdAt, updatedAt, ...rest } = reply.body[0]
    for (const date of [createdAt, updatedAt]) assert.equal(new Date(date).toISOString(), date)
    assert.deepEqual(rest, {
      id: 'local',
      name: 'local',
      organizationId: null,
      regionType: 'shared',
      proxyUrl: null,
      sshGatewayUrl: null,
      snapshotManagerUrl: null,
      otelEndpoint: null,
      savesStopped: false,
    })
  })
})

suite('PATCH /shared-regions/{id}', () => {
  test('PATCH /shared-regions/{id} sets whether the stopped sandboxes of a region are saved to the store', async () => {
    await using app = await startControl()
    await addRegions(app)
    for (const id of ['local', 'gold']) {
      const { status, body } = await app.as('admin').patch(`/shared-regions/${id}`, { savesStopped: true })
      assert.deepEqual([status, body.id, body.savesStopped], [200, id, true])
    }
    assert.equal((await app.as('nobody').get('/shared-regions')).body[0].savesStopped, true)
    await app.as('admin').patch('/shared-regions/local', { savesStopped: false })
    assert.equal((await app.as('viewer').get('/regions/local')).body.savesStopped, false)
  })

  test('PATCH /shared-regions/{id} answers 404 for an organization’s region, 400 for a bad body, 401 or 403 to non-operators', async () => {
    await using app = await startControl()
    await addRegions(app)
    const ask = async (who: 'admin' | 'owner' | 'nobody', id: string, body: object) =>
      (await app.as(who).patch(`/shared-regions/${id}`, body)).status
    assert.equal(await ask('nobody', 'local', { savesStopped: true }), 401)
    assert.equal(await ask('owner', 'local', { savesStopped: true }), 403)
    for (const id of ['ours_1', 'none']) assert.equal(await ask('admin', id, { savesStopped: true }), 404)
    for (const body of [{}, { savesStopped: 'yes' }, { savesStopped: null }])
      assert.equal(await ask('admin', 'local', body), 400)
  })
})

suite('GET /regions', () => {
  test('GET /regions lists the organization’s own regions before shared regions, and no other regions', async () => {
    await using app = await startControl()
    await addRegions(app)
    assert.deepEqual(idsOf((await app.as('viewer').get('/regions')).body), ['ours_1', 'local'])
    assert.deepEqual(idsOf((await app.as('stranger').get('/regions')).body), ['theirs_1', 'local'])
  })

  test('GET /regions shows a region that needs a quota only to organizations with a quota in that region', async () => {
    await using app = await startControl()
    await addRegions(app)
    await app.database.sql`update regions set enforces_quota = true where id = 'local'`
    assert.deepEqual(idsOf((await app.as('viewer').get('/regions')).body), ['ours_1'])
    for (const region of ['local', 'gold']) {
      await app.as('admin').patch(`/organizations/${organizations.ours}/quota/${region}`, { totalCpuQuota: 1 })
    }
    assert.deepEqual(idsOf((await app.as('viewer').get('/regions')).body), ['ours_1', 'gold', 'local'])
    assert.equal((await app.as('viewer').get('/regions/gold')).status, 200)
    assert.deepEqual(idsOf((await app.as('stranger').get('/regions')).body), ['theirs_1'])
  })
})

suite('GET /regions/{id}', () => {
  test('GET /regions/{id} returns a region of the organization or a shared region', async () => {
    await using app = await startControl()
    await addRegions(app)
    const own = await app.as('viewer').get('/regions/ours_1')
    assert.deepEqual([own.status, own.body.proxyUrl], [200, 'https://proxy.example.com'])
    assert.equal((await app.as('viewer').get('/regions/local')).status, 200)
  })

  test('GET /regions/{id} answers 404 for another organization’s region, a dedicated region without a quota, or an unknown id', async () => {
    await using app = await startControl()
    await addRegions(app)
    for (const id of ['theirs_1', 'gold', 'no-such']) {
      assert.equal((await app.as('owner').get(`/regions/${id}`)).status, 404, id)
    }
  })
})
