// The telemetry endpoint that a sandbox gets (`DAYTONA_OTEL_ENDPOINT`).
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { connectRunner, type SimulatedRunner, untilState } from '#test/control/simulated-runner.ts'

const ofRegion = 'https://otel.region.test:4318'
const ofBox = 'http://10.0.0.7:4318/v1'

/** Restarts a sandbox and returns the assignment that its runner gets. */
const restarted = async (app: TestControl, runner: SimulatedRunner, id: string) => {
  await app.as('member').post(`/sandbox/${id}/stop`)
  await untilState(app, id, 'stopped')
  const from = runner.asked.length
  await app.as('member').post(`/sandbox/${id}/start`)
  await untilState(app, id, 'started')
  return runner.asked.slice(from).findLast(({ sandboxId }) => sandboxId === id)
}

suite('the telemetry endpoint of a sandbox', () => {
  test('a sandbox uses its creator’s telemetry endpoint or its region’s; replies show only the creator’s', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using runner = await connectRunner(app)
    const config = { endpoint: 'https://otel.example.com', headers: { 'x-api-key': 'open sesame' } }
    await app.as('owner').put(`/organizations/${organizations.ours}/otel-config`, config)
    const create = async (body: object) => (await app.as('member').post('/sandbox', body)).body
    assert.equal((await create({ name: 'none' })).otelEndpointOverride, undefined)
    await app.database.sql`update regions set otel_endpoint = ${ofRegion}`
    await create({ name: 'plain', otelEndpointOverride: null })
    assert.equal((await create({ name: 'own', otelEndpointOverride: ofBox })).otelEndpointOverride, ofBox)
    const told = new Map(runner.asked.map(({ name, otelEndpoint }) => [name, otelEndpoint]))
    assert.deepEqual([told.get('none'), told.get('plain'), told.get('own')], [undefined, ofRegion, ofBox])
    assert.ok(!JSON.stringify(runner.asked).includes('sesame'))
    assert.equal((await app.as('viewer').get('/sandbox/own')).body.otelEndpointOverride, ofBox)
    const { items } = (await app.as('viewer').get('/sandbox')).body
    assert.ok(items.every((item: object) => !('otelEndpointOverride' in item)))
  })

  test('if a region’s telemetry endpoint changes, its sandboxes use the new endpoint from the next start', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using runner = await connectRunner(app)
    const { id: regionId } = (await app.as('owner').post('/regions', { name: 'cellar' })).body
    const [plain, own] = await Promise.all(
      [{}, { otelEndpointOverride: ofBox }].map(
        async (body) => (await app.as('member').post('/sandbox', body)).body.id,
      ),
    )
    await app.database.sql`update sandboxes set region_id = ${regionId}`
    for (const [given, expected] of [
      [ofRegion, ofRegion],
      [null, undefined],
    ]) {
      assert.equal((await app.as('owner').patch(`/regions/${regionId}`, { otelEndpoint: given })).status, 200)
      assert.equal((await restarted(app, runner, plain))?.otelEndpoint, expected)
      assert.equal((await restarted(app, runner, own))?.otelEndpoint, ofBox)
    }
  })
})
