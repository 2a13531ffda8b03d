import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { applyImageReport } from '#src/control/runner-link/image-reports.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys, organizations } from '#test/control/people.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'
import { desktop } from './desktop.ts'
import { reconcileSnapshots } from './of-runner.ts'
import { ensureBuiltIn } from './write.ts'

const create = async (app: TestControl, who: 'owner' | 'stranger' = 'owner') => {
  const { status, body, text } = await app.as(who).post('/sandbox', { snapshot: 'desktop' })
  assert.equal(status, 200, text)
  return body
}

suite('POST /sandbox with the snapshot "desktop"', () => {
  test('a sandbox of the snapshot `desktop` has the snapshot’s size, and starts after the image is built', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    const made = await create(app)
    assert.deepEqual(
      [made.state, made.snapshot, made.cpu, made.memory, made.disk],
      ['pending_build', 'desktop', desktop.cpu, desktop.memoryGiB, desktop.diskGiB],
    )
    const { snapshotRef: image } = made.buildInfo
    const [wanted] = (await app.with(keys.runner).get('/runners/images')).body
    assert.deepEqual(
      [wanted.image, wanted.source],
      [image, { kind: 'definition', dockerfile: desktop.dockerfile, snapshots: { default: 'default' } }],
    )
    const config = { entrypoint: [], env: {}, user: 'daytona', workdir: '/home/daytona' }
    const runner = { id: 'local', regionId: 'local' }
    await applyImageReport(app.app.sandboxes, runner, { image, state: 'present', config })
    await untilState(app, made.id, 'started')
    const second = await create(app)
    assert.deepEqual([second.buildInfo.snapshotRef, second.snapshot], [image, 'desktop'])
    assert.notEqual((await create(app, 'stranger')).buildInfo.snapshotRef, image)
  })

  test('if the build of `desktop` fails, the sandbox is `build_failed`, and the next create builds again', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    const made = await create(app)
    const runner = { id: 'local', regionId: 'local' }
    const report = { image: made.buildInfo.snapshotRef, state: 'error', errorReason: 'No mirror.' } as const
    await applyImageReport(app.app.sandboxes, runner, report)
    const failed = (await app.as('owner').get(`/sandbox/${made.id}`)).body
    assert.deepEqual([failed.state, failed.errorReason], ['build_failed', 'No mirror.'])
    assert.equal((await app.as('owner').get('/snapshots/desktop')).body.state, 'active')
    assert.equal((await create(app)).state, 'pending_build')
  })

  test('a create from `desktop` uses the organization’s own snapshot of that name, if there is one', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    await app.database.sql`
      insert into snapshots (organization_id, name, state, image, cpu, memory_gib, disk_gib)
      values (${organizations.ours}, 'desktop', 'active', 'default', 1, 1, 3)`
    const [own, others] = [await create(app), await create(app, 'stranger')]
    assert.deepEqual([own.buildInfo, own.cpu], [undefined, 1])
    assert.equal(others.buildInfo.dockerfileContent, desktop.dockerfile)
  })
})

suite('the snapshot "desktop"', () => {
  test('POST /sandbox from `desktop` answers 503 with Retry-After while the default image is being made', async () => {
    await using app = await startControl()
    await app.database.sql`update snapshots set state = 'pulling' where name = 'default'`
    const { status, body, headers } = await app.as('owner').post('/sandbox', { snapshot: 'desktop' })
    assert.deepEqual([status, headers['retry-after']], [503, '5'])
    assert.match(body.message, /The default image is being made/)
  })

  test('GET /snapshots/desktop returns the definition; the snapshot is active although no runner has its image', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    await reconcileSnapshots(app.database, new Date())
    const { status, body } = await app.as('viewer').get('/snapshots/desktop')
    assert.deepEqual(
      [status, body.general, body.state, body.buildInfo.dockerfileContent],
      [200, true, 'active', desktop.dockerfile],
    )
  })

  test('when a newer version of control starts, the snapshot `desktop` gets the definition of that version', async () => {
    await using app = await startControl()
    await app.database.sql`update snapshots set dockerfile = 'FROM default' where name = 'desktop'`
    await app.database.transaction((transaction) => ensureBuiltIn(transaction, 'default'))
    const { body } = await app.as('viewer').get('/snapshots/desktop')
    assert.equal(body.buildInfo.dockerfileContent, desktop.dockerfile)
  })

  test('a definition FROM desktop, or a warm pool of `desktop`, answers 400 with advice what to do instead', async () => {
    await using app = await startControl()
    const buildInfo = { dockerfileContent: 'FROM desktop\n' }
    const answers = [
      await app.as('owner').post('/sandbox', { buildInfo }),
      await app.as('owner').post('/snapshots', { name: 'mine', buildInfo }),
      await app.as('owner').post('/warm-pools', { snapshot: 'desktop', pool: 1 }),
    ]
    assert.deepEqual(
      answers.map(({ status }) => status),
      [400, 400, 400],
    )
    assert.match(answers[0]!.text, /FROM desktop: this snapshot is a definition\. Copy its lines/)
    assert.match(answers[2]!.text, /\\"desktop\\" is a definition: create a snapshot of it first/)
  })
})
