import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'
import { imageBytesIn, imageLines, sandboxesIn, sandboxLines } from './status.ts'

suite('alcove status', () => {
  test('`alcove status` counts the sandboxes of all organizations by state', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using _runner = await connectRunner(app)
    const { body } = await app.as('member').post('/sandbox', {})
    for (const who of ['member', 'stranger'] as const) await app.as(who).post('/sandbox', {})
    await app.as('owner').post(`/sandbox/${body.id}/stop`)
    await untilState(app, body.id, 'stopped')
    const { text } = await app.as('admin').get('/metrics')
    assert.deepEqual(sandboxesIn(text), { started: 2, stopped: 1 })
  })

  test('`alcove status` counts failed creates in one line, and all other sandboxes by state in another line', () => {
    assert.deepEqual(sandboxLines({ started: 2, build_failed: 3, stopped: 1 }), [
      'sandboxes 2 started, 1 stopped',
      'failed creates 3, kept until their owners delete them; they use no CPU, memory or disk',
    ])
    assert.deepEqual(sandboxLines({ build_failed: 1 }).slice(0, 1), ['sandboxes none'])
    assert.deepEqual(sandboxLines({}), ['sandboxes none'])
  })

  test('`alcove status` shows how much disk space the images of each runner use, if the runner reports it', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    await app.as('admin').post('/runners', { name: 'silent' })
    const GiB = 1024 ** 3
    const bytes = { images: 3.1 * GiB, layers: 0.8 * GiB, lines: 0 }
    runner.say({ type: 'alive', imageStorage: { bytes, givenBack: {} } })
    const isKept = async () =>
      (await app.database.sql`select image_storage from runners where id = 'local'`)[0]?.['image_storage'] !== null
    while (!(await isKept())) await new Promise(setImmediate)
    const { text } = await app.as('admin').get('/metrics')
    assert.deepEqual(imageLines(imageBytesIn(text)), [
      'disk of local: images 3.1 GiB, kept layers 819.2 MiB, build lines 0 bytes',
    ])
  })
})
