import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { connectRunner, type SimulatedRunner } from '#test/control/simulated-runner.ts'
import { addBuildLog, dropOldBuildLogs, readBuildLog } from './build-logs.ts'

const dockerfileContent = 'FROM ghcr.io/team/tool:1\nRUN true\n'
const ownRunner = { id: 'local', regionId: 'local' }

const build = async (app: TestControl, name = 'tool') => {
  const made = await app.as('owner').post('/snapshots', { name, buildInfo: { dockerfileContent } })
  assert.equal(made.status, 200, made.text)
  return { id: made.body.id as string, image: made.body.buildInfo.snapshotRef as string }
}

const untilLogged = async (app: TestControl, path: string, text: string) => {
  for (const end = Date.now() + 20_000; Date.now() < end; ) if ((await app.as('owner').get(path)).text === text) return
  assert.fail(`never said ${text}`)
}

suite('GET /snapshots/{idOrName}/build-logs-url, GET /snapshots/{idOrName}/build-logs', () => {
  test('GET /snapshots/{idOrName}/build-logs returns the log so far, or follows the log until the image is made', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    const { id, image } = await build(app)
    const { body } = await app.as('member').get('/snapshots/tool/build-logs-url')
    assert.match(body.url, new RegExp(`^http.*/api/snapshots/${id}/build-logs$`))
    const path = `/snapshots/${id}/build-logs`
    assert.deepEqual((await app.as('member').get(path)).text, '')
    const followed = app.as('member').get(`${path}?follow=true`)
    runner.say({ type: 'image-log', image, text: 'Line 2: true\n' })
    runner.say({ type: 'image-log', image, text: 'héllo\0\n' })
    await untilLogged(app, path, 'Line 2: true\nhéllo\n')
    runner.say({ type: 'image-log', image, text: 'done\n' })
    runner.say({ type: 'image', report: { image, state: 'present', sizeBytes: 1 } })
    const { status, headers, text } = await followed
    assert.deepEqual([status, headers['content-type']], [200, 'text/plain; charset=utf-8'])
    assert.equal(text, 'Line 2: true\nhéllo\ndone\n')
  })

  test('GET /sandbox/{sandboxIdOrName}/build-logs-url, GET /sandbox/{sandboxIdOrName}/build-logs answer 200 for a sandbox whose image is being built', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    const made = await app.as('owner').post('/sandbox', { name: 'box', buildInfo: { dockerfileContent } })
    assert.equal(made.body.state, 'pending_build', made.text)
    const image = made.body.buildInfo.snapshotRef
    const { body } = await app.as('owner').get('/sandbox/box/build-logs-url')
    assert.match(body.url, new RegExp(`/api/sandbox/${made.body.id}/build-logs$`))
    const followed = app.as('owner').get('/sandbox/box/build-logs?follow=true')
    runner.say({ type: 'image-log', image, text: 'Line 2: exit code 1\n' })
    runner.say({ type: 'image', report: { image, state: 'error', errorReason: 'Line 2: exit code 1' } })
    runner.say({ type: 'image', report: { image, state: 'absent' } })
    assert.equal((await followed).text, 'Line 2: exit code 1\n')
    assert.equal((await app.as('owner').get('/sandbox/box/build-logs')).text, 'Line 2: exit code 1\n')
    // A second create with the same definition starts a new build attempt, with an empty log.
    await app.as('owner').post('/sandbox', { name: 'again', buildInfo: { dockerfileContent } })
    assert.equal((await app.as('owner').get('/sandbox/again/build-logs')).text, '')
  })

  test('build logs answer 404 for images of other organizations or without a build, and 401 without a key', async () => {
    await using app = await startControl()
    await using _runner: SimulatedRunner = await connectRunner(app)
    const { id } = await build(app)
    await app.as('owner').post('/sandbox', { name: 'box' })
    for (const path of [`/snapshots/${id}`, '/sandbox/box'])
      for (const end of ['build-logs', 'build-logs-url']) {
        assert.equal((await app.as('stranger').get(`${path}/${end}`)).status, 404)
        assert.equal((await app.as('nobody').get(`${path}/${end}`)).status, 401)
      }
    assert.equal((await app.as('owner').get('/snapshots/none/build-logs')).status, 404)
    assert.match((await app.as('owner').get('/sandbox/box/build-logs')).body.message, /not built from a definition/)
    assert.equal((await app.as('owner').get('/snapshots/tool/build-logs?follow=2')).status, 400)
  })

  test('a build log is limited in size, written only by runners of its image, and deleted after the image', async () => {
    await using app = await startControl()
    const { image } = await build(app)
    const { sandboxes: parts } = app.app
    await addBuildLog(parts, { id: 'other', regionId: 'elsewhere' }, { image, text: 'not mine' })
    await addBuildLog(parts, ownRunner, { image: 'no-such', text: 'of nothing' })
    for (let n = 0; n < 40; n++) await addBuildLog(parts, ownRunner, { image, text: 'x'.repeat(64 * 1024) })
    const { text } = await app.as('owner').get('/snapshots/tool/build-logs')
    assert.equal(text, 'x'.repeat(1024 * 1024))
    const later = new Date(app.clock.now().getTime() + 8 * 86_400_000)
    await dropOldBuildLogs(app.database.sql, later)
    assert.equal((await app.as('owner').get('/snapshots/tool/build-logs')).text, text, 'its image is wanted')
    await app.as('owner').delete('/snapshots/tool')
    await dropOldBuildLogs(app.database.sql, later)
    const [left] = await app.database.sql<[{ count: number }]>`select count(*)::int as count from build_logs`
    assert.equal(left.count, 0)
  })

  test('an organization that follows 50 build logs gets 429 for the 51st; other organizations get 200', async () => {
    await using app = await startControl()
    const follow = (organizationId: string) =>
      readBuildLog(app.app.sandboxes, 'img', { follow: true, organizationId, isBeingMade: async () => true })
    const followed: Readable[] = []
    try {
      for (let n = 0; n < 50; n++) followed.push(follow('one'))
      assert.throws(() => follow('one'), { code: 'rate_limited' })
      followed.push(follow('another'))
      await once(followed[0]!.destroy(), 'close')
      followed.push(follow('one'))
    } finally {
      for (const each of followed) each.destroy()
    }
  })
})
