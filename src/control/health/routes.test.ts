import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'

suite('GET /health', () => {
  test('GET /health answers 200 to every caller', async () => {
    await using app = await startControl()
    const reply = await app.as('nobody').get('/health')
    assert.deepEqual([reply.status, reply.body], [200, { status: 'ok' }])
  })
})

suite('GET /health/ready', () => {
  test('GET /health/ready answers 200 while the database answers and a runner has the default snapshot', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    assert.equal((await app.as('nobody').get('/health/ready')).status, 200)
  })

  test('without a database, GET /health answers 200, and GET /health/ready and all other calls answer 503', async () => {
    await using app = await startControl()
    await app.database.close()
    assert.equal((await app.as('nobody').get('/health/ready')).status, 503)
    assert.equal((await app.as('nobody').get('/health')).status, 200)
    assert.equal((await app.as('owner').get('/users/me')).status, 503)
  })
})
