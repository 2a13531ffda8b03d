import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'

const waiting = { sandboxes: { createWaitSeconds: 20 } }
const config = { entrypoint: ['/run'], env: {}, user: 'tool', workdir: '/' }

const get = async (app: TestControl, name: string) => (await app.as('owner').get(`/snapshots/${name}`)).body

const untilSnapshot = async (app: TestControl, name: string, state: string) => {
  const end = performance.now() + 20_000
  while ((await get(app, name)).state !== state) assert.ok(performance.now() < end, `${name} is never ${state}`)
}

const imageOf = async (app: TestControl, name: string): Promise<string> => {
  const [row] = await app.database.sql<{ image: string }[]>`select image from snapshots where name = ${name}`
  return row!.image
}

suite('the state of snapshots after a runner has listed its images', () => {
  test('in a region with one runner, a snapshot is `active` if the runner has its image, else `pulling`', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    await app.as('owner').post('/snapshots', { name: 'tool', imageName: 'ghcr.io/team/tool:1' })
    const image = await imageOf(app, 'tool')
    runner.say({ type: 'image', report: { image, state: 'present', config } })
    await untilSnapshot(app, 'tool', 'active')
    await runner.cut()
    await runner.link([])
    await untilSnapshot(app, 'tool', 'pulling')
    await untilSnapshot(app, 'default', 'pulling')
    await runner.cut()
    await runner.link(['default', image])
    await untilSnapshot(app, 'tool', 'active')
    await untilSnapshot(app, 'default', 'active')
  })

  test('if the only runner with a snapshot’s image is removed, the snapshot is in error, with the reason', async () => {
    await using app = await startControl(waiting)
    const { apiKey: token } = (await app.as('admin').post('/runners', { name: 'second' })).body
    await using runner = await connectRunner(app, { token })
    const box = (await app.as('owner').post('/sandbox', { name: 'box' })).body
    for (const name of ['used', 'unused']) {
      assert.equal((await app.as('owner').post('/sandbox/box/snapshot', { name })).status, 200)
      runner.say({ type: 'image', report: { image: await imageOf(app, name), state: 'present', config } })
      await untilSnapshot(app, name, 'active')
      await untilState(app, box.id, 'started')
    }
    await app.as('owner').post('/snapshots/unused/deactivate')
    assert.equal((await get(app, 'unused')).state, 'inactive')
    assert.equal((await app.as('admin').delete('/runners/second?force=true')).status, 204)
    for (const name of ['used', 'unused']) {
      const { state, errorReason } = await get(app, name)
      assert.deepEqual([state, errorReason], ['error', 'The runner that kept it was taken out of service.'])
    }
  })
})
