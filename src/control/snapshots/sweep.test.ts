import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'

suite('snapshots whose image no runner finishes to pull or build', () => {
  test('a snapshot fails if connected runners report no progress of its image for an hour', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    await app.as('owner').post('/snapshots', { name: 'brought', imageName: 'ghcr.io/team/tool:1' })
    await app.as('owner').post('/snapshots', { name: 'built', buildInfo: { dockerfileContent: 'FROM python:3.12\n' } })
    app.clock.advance({ minutes: 61 })
    await runner.cut()
    await runner.link()
    await app.sweep()
    const reason = 'No runner has finished it within an hour of its last progress.'
    for (const [name, ending] of [
      ['brought', 'error'],
      ['built', 'build_failed'],
    ] as const) {
      const { state, errorReason } = (await app.as('owner').get(`/snapshots/${name}`)).body
      assert.deepEqual([state, errorReason], [ending, reason])
    }
  })
})
