import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { connectRunner, type SimulatedRunner } from '#test/control/simulated-runner.ts'

const withBox = async (check: (app: TestControl, id: string, runner: SimulatedRunner) => Promise<void>) => {
  await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
  await using runner = await connectRunner(app)
  const { body } = await app.as('member').post('/sandbox', { name: 'box' })
  await check(app, body.id, runner)
}

suite('settings of a sandbox that a caller may change', () => {
  const good: [method: 'post' | 'put', path: string, field: string, value: unknown][] = [
    ['post', 'public/true', 'public', true],
    ['post', 'public/false', 'public', false],
    ['post', 'autostop/0', 'autoStopInterval', 0],
    ['post', 'autostop/30', 'autoStopInterval', 30],
    ['post', 'autopause/0', 'autoPauseInterval', 0],
    ['post', 'autoarchive/60', 'autoArchiveInterval', 60],
    ['post', 'autoarchive/0', 'autoArchiveInterval', 43_200],
    ['post', 'autoarchive/999999', 'autoArchiveInterval', 43_200],
    ['post', 'autodelete/10', 'autoDeleteInterval', 10],
    ['post', 'autodelete/-5', 'autoDeleteInterval', -1],
    ['post', 'autodelete/0', 'autoDeleteInterval', 0],
    ['post', 'backup', 'state', 'started'],
  ]

  test('POST /sandbox/:sandboxIdOrName/public/:isPublic, POST /sandbox/:sandboxIdOrName/autostop/:interval, POST /sandbox/:sandboxIdOrName/autopause/:interval, POST /sandbox/:sandboxIdOrName/autoarchive/:interval, POST /sandbox/:sandboxIdOrName/autodelete/:interval, POST /sandbox/:sandboxIdOrName/backup: each call answers 200; the reply and the stored sandbox have the new value', () =>
    withBox(async (app, id) => {
      for (const [method, path, field, value] of good) {
        const reply = await app.as('member')[method](`/sandbox/box/${path}`)
        assert.deepEqual([reply.status, reply.body[field]], [200, value], path)
        assert.equal((await app.as('member').get(`/sandbox/${id}`)).body[field], value, path)
      }
    }))

  const bad = [
    'public/yes',
    'autostop/-1',
    'autostop/abc',
    'autostop/1.5',
    'autostop/1e3',
    'autostop/99999999999',
    'autopause/5',
    'autopause/x',
    'autoarchive/-1',
    'autodelete/x',
    'ttl/-1',
    'ttl/x',
    'ttl/1.5',
  ]

  test('an interval that is not a whole number of minutes in its range answers 400, and changes nothing', () =>
    withBox(async (app) => {
      const before = (await app.as('member').get('/sandbox/box')).body
      for (const path of bad) assert.equal((await app.as('member').post(`/sandbox/box/${path}`)).status, 400, path)
      assert.deepEqual((await app.as('member').get('/sandbox/box')).body, before)
    }))

  test('each endpoint that changes a sandbox’s setting answers 404 to strangers, 403 to a viewer', () =>
    withBox(async (app) => {
      const paths = [...good.map(([, path]) => path), 'ttl/5', 'signing-key/rotate']
      for (const path of paths) {
        assert.equal((await app.as('stranger').post(`/sandbox/box/${path}`)).status, 404, path)
        assert.equal((await app.as('viewer').post(`/sandbox/box/${path}`)).status, 403, path)
        assert.equal((await app.as('nobody').post(`/sandbox/box/${path}`)).status, 401, path)
      }
      for (const path of ['signing-key', 'toolbox-proxy-url', 'ports/80/preview-url']) {
        assert.equal((await app.as('stranger').get(`/sandbox/box/${path}`)).status, 404, path)
        assert.equal((await app.as('nobody').get(`/sandbox/box/${path}`)).status, 401, path)
      }
      assert.equal((await app.as('stranger').put('/sandbox/box/labels', { labels: {} })).status, 404)
      assert.equal((await app.as('stranger').post('/sandbox/box/last-activity')).status, 404)
    }))

  test('PUT /sandbox/:sandboxIdOrName/labels replaces all labels', () =>
    withBox(async (app) => {
      await app.as('member').put('/sandbox/box/labels', { labels: { a: '1', b: '2' } })
      const reply = await app.as('member').put('/sandbox/box/labels', { labels: { c: '3' } })
      assert.deepEqual([reply.status, reply.body], [200, { labels: { c: '3' } }])
      assert.deepEqual((await app.as('viewer').get('/sandbox/box')).body.labels, { c: '3' })
      for (const labels of [undefined, null, [], { a: 1 }, 'x']) {
        assert.equal((await app.as('member').put('/sandbox/box/labels', { labels })).status, 400)
      }
      assert.equal((await app.as('viewer').put('/sandbox/box/labels', { labels: {} })).status, 403)
    }))

  test('PUT /sandbox/:sandboxIdOrName/labels sends the runner the new `code-run` language in the labels, or `python` for an invalid language', () =>
    withBox(async (app, _id, runner) => {
      const set = (language: string) =>
        app.as('member').put('/sandbox/box/labels', { labels: { 'code-toolbox-language': language } })
      await set('typescript')
      const asked = await runner.untilAsked(({ generation }) => generation === 2)
      assert.deepEqual([asked.language, asked.target], ['typescript', 'started'])
      await set('typescript')
      await set('x'.repeat(60_000))
      assert.equal((await runner.untilAsked(({ generation }) => generation === 3)).language, 'python')
      assert.equal(runner.asked.length, 3)
      assert.equal((await app.as('member').post('/sandbox/box/stop')).body.state, 'stopping')
    }))

  test('POST /sandbox/:sandboxIdOrName/ttl/:ttlMinutes destroys the sandbox after `ttlMinutes` from the call; 0 means never', () =>
    withBox(async (app) => {
      app.clock.advance({ minutes: 7 })
      const reply = await app.as('member').post('/sandbox/box/ttl/10')
      assert.equal(Date.parse(reply.body.autoDestroyAt), app.clock.now().getTime() + 600_000)
      assert.equal((await app.as('member').post('/sandbox/box/ttl/0')).body.autoDestroyAt, undefined)
    }))

  test('POST /sandbox/:sandboxIdOrName/last-activity answers 201 without a body, even to a viewer', () =>
    withBox(async (app) => {
      app.clock.advance({ minutes: 7 })
      for (const body of [undefined, {}, { activityType: 'x' }]) {
        const reply = await app.as('viewer').post('/sandbox/box/last-activity', body)
        assert.deepEqual([reply.status, reply.text], [201, ''])
      }
      const { lastActivityAt } = (await app.as('viewer').get('/sandbox/box')).body
      assert.equal(Date.parse(lastActivityAt), app.clock.now().getTime())
    }))

  test('GET /sandbox/:sandboxIdOrName/signing-key returns the key as text, the same until POST /sandbox/:sandboxIdOrName/signing-key/rotate', () =>
    withBox(async (app) => {
      const first = await app.as('member').get('/sandbox/box/signing-key')
      assert.match(first.text, /^[\w-]{20,}$/)
      assert.equal(first.headers['content-type'], 'text/plain; charset=utf-8')
      assert.equal((await app.as('member').get('/sandbox/box/signing-key')).body, first.body)
      const rotated = await app.as('member').post('/sandbox/box/signing-key/rotate')
      assert.equal(rotated.status, 200)
      assert.match(rotated.text, /^[\w-]{20,}$/)
      assert.notEqual(rotated.body, first.body)
      assert.equal((await app.as('member').get('/sandbox/box/signing-key')).body, rotated.body)
      assert.equal((await app.as('viewer').get('/sandbox/box/signing-key')).status, 403)
    }))

  test('GET /sandbox/:sandboxIdOrName/toolbox-proxy-url returns the base URL of the toolbox', () =>
    withBox(async (app) => {
      const reply = await app.as('viewer').get('/sandbox/box/toolbox-proxy-url')
      assert.deepEqual([reply.status, reply.body], [200, { url: 'http://proxy.test:3001/toolbox' }])
    }))
})
