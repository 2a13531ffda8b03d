// Tests the entrypoint: the command that a runner runs in a sandbox at each start.

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { applyImageReport } from '#src/control/runner-link/image-reports.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'

const waits = { createWaitSeconds: 20 }
const config = { entrypoint: ['/run', 'image'], env: {}, user: 'app', workdir: '/' }

const imageOf = async (app: TestControl, name: string): Promise<string> => {
  const [row] = await app.database.sql<{ image: string }[]>`select image from snapshots where name = ${name}`
  return row!.image
}

const tell = (app: TestControl, image: string) =>
  applyImageReport(app.app.sandboxes, { id: 'local', regionId: 'local' }, { image, state: 'present', config })

const snapshot = async (app: TestControl, name: string, entrypoint?: string[]) => {
  const body = { name, imageName: 'ghcr.io/team/tool:1', ...(entrypoint ? { entrypoint } : {}) }
  assert.equal((await app.as('owner').post('/snapshots', body)).status, 200)
  await tell(app, await imageOf(app, name))
}

const create = async (app: TestControl, body: object): Promise<string> => {
  const made = await app.as('owner').post('/sandbox', body)
  assert.equal(made.status, 200, made.text)
  return made.body.id
}

type Linked = Awaited<ReturnType<typeof connectRunner>>
const askedOf = (runner: Linked, id: string) => runner.asked.filter(({ sandboxId }) => sandboxId === id).at(-1)

suite('the entrypoint of a sandbox', () => {
  test('a sandbox gets the entrypoint of its snapshot, or else of its image; the snapshot `default` has none', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using runner = await connectRunner(app)
    await snapshot(app, 'of-image')
    await snapshot(app, 'own', ['/run', 'snapshot'])
    await snapshot(app, 'none', [])
    for (const [name, entrypoint] of [
      ['of-image', config.entrypoint],
      ['own', ['/run', 'snapshot']],
      ['none', []],
      ['default', undefined],
    ] as const)
      assert.deepEqual(askedOf(runner, await create(app, { snapshot: name }))?.entrypoint, entrypoint, name)
  })

  test('a sandbox keeps its entrypoint at each start, and its forks and snapshots get the entrypoint too', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using runner = await connectRunner(app)
    await snapshot(app, 'own', ['/run', 'snapshot'])
    const id = await create(app, { snapshot: 'own' })
    const forked = await app.as('owner').post(`/sandbox/${id}/fork`)
    assert.deepEqual(askedOf(runner, forked.body.id)?.entrypoint, ['/run', 'snapshot'])
    assert.equal((await app.as('owner').post(`/sandbox/${id}/snapshot`, { name: 'kept' })).status, 200)
    await tell(app, await imageOf(app, 'kept'))
    await untilState(app, id, 'started')
    assert.deepEqual((await app.as('owner').get('/snapshots/kept')).body.entrypoint, ['/run', 'snapshot'])
    // The test deletes the snapshot, to show that the sandbox has its own copy of the entrypoint.
    assert.equal((await app.as('owner').delete('/snapshots/own')).status, 200)
    await app.as('owner').post(`/sandbox/${id}/stop`)
    await untilState(app, id, 'stopped')
    await app.as('owner').post(`/sandbox/${id}/start`)
    await untilState(app, id, 'started')
    const told = askedOf(runner, id)
    assert.deepEqual([told?.target, told?.entrypoint], ['started', ['/run', 'snapshot']])
  })

  test('a sandbox made from a definition gets the entrypoint of its built image', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    const buildInfo = { dockerfileContent: 'FROM alpine:3.20\nENTRYPOINT ["/run"]\n' }
    const made = await app.as('owner').post('/sandbox', { buildInfo })
    await tell(app, made.body.buildInfo.snapshotRef)
    await untilState(app, made.body.id, 'started')
    assert.deepEqual(askedOf(runner, made.body.id)?.entrypoint, config.entrypoint)
  })

  test('a warm sandbox gets its entrypoint only with the assignment of the claim', async () => {
    await using app = await startControl({ sandboxes: waits })
    await using runner = await connectRunner(app)
    await snapshot(app, 'own', ['/run', 'snapshot'])
    assert.equal((await app.as('owner').post('/warm-pools', { snapshot: 'own', pool: 1 })).status, 201)
    await app.sweep()
    const warm = await runner.untilAsked(({ isWarm }) => isWarm === true)
    await untilState(app, warm.sandboxId, 'started')
    assert.equal(warm.entrypoint, undefined)
    const id = await create(app, { snapshot: 'own' })
    assert.equal(id, warm.sandboxId)
    const { entrypoint } = await runner.untilAsked(({ sandboxId, isWarm }) => sandboxId === id && isWarm !== true)
    assert.deepEqual(entrypoint, ['/run', 'snapshot'])
  })
})
