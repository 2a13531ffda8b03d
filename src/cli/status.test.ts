import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'
import { sandboxesIn } from './status.ts'

suite('alcove status', () => {
  test('the status counts the sandboxes of all organizations by state', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using _runner = await connectRunner(app)
    const { body } = await app.as('member').post('/sandbox', {})
    for (const who of ['member', 'stranger'] as const) await app.as(who).post('/sandbox', {})
    await app.as('owner').post(`/sandbox/${body.id}/stop`)
    await untilState(app, body.id, 'stopped')
    const { text } = await app.as('admin').get('/metrics')
    assert.deepEqual(sandboxesIn(text), { started: 2, stopped: 1 })
  })
})
