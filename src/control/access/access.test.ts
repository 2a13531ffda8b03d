import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys, organizations } from '#test/control/people.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'

const withBox = async (check: (app: TestControl, id: string) => Promise<void>) => {
  await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
  await using _runner = await connectRunner(app)
  const { body } = await app.as('member').post('/sandbox', { name: 'box' })
  await check(app, body.id)
}

const bearer = (token: string, organizationId?: string) => ({
  kind: 'bearer',
  token,
  ...(organizationId === undefined ? {} : { organizationId }),
})

const ask = (app: TestControl, sandboxIdOrName: string, credential: object, countsAsActivity = false) =>
  app.as('proxy').post('/proxy/access', { sandboxIdOrName, credentials: [credential], countsAsActivity })

/** Asks control for access to a preview, as a gate does. */
const askPort = (app: TestControl, sandboxIdOrName: string, port: number, credentials: object[] = [], more = {}) =>
  app.as('proxy').post('/proxy/access', { sandboxIdOrName, credentials, port, countsAsActivity: false, ...more })

const sign = (key: string, method: string, path: string, expires: string) => ({
  kind: 'file-signature',
  method,
  path,
  expires,
  signature: `v1_${createHmac('sha256', key).update(`v1:files:${method}:${path}:${expires}`).digest('base64url')}`,
})

suite('POST /proxy/access', () => {
  test('POST /proxy/access answers 200 to any API key of the sandbox’s organization, for the sandbox’s id and name', () =>
    withBox(async (app, id) => {
      for (const key of [keys.owner, keys.member, keys.viewer]) {
        for (const idOrName of [id, 'box']) {
          const { status, body } = await ask(app, idOrName, bearer(key))
          assert.equal(status, 200)
          const { ticket, ...said } = body
          assert.equal(typeof ticket, 'string')
          assert.deepEqual(said, {
            sandboxId: id,
            organizationId: organizations.ours,
            runnerAddress: 'unix:/simulated/runner.sock',
            isStarted: true,
            state: 'started',
            openedBy: 'bearer',
            isBearerOurs: true,
            warnsVisitors: false,
          })
        }
      }
      assert.equal((await ask(app, id, bearer(keys.viewer, organizations.ours))).status, 200)
    }))

  test('POST /proxy/access answers 404 to another organization’s key, for the sandbox’s id and name, and 401 without a key', () =>
    withBox(async (app, id) => {
      assert.equal((await ask(app, id, bearer(keys.stranger))).status, 404)
      assert.equal((await ask(app, 'box', bearer(keys.stranger))).status, 404)
      assert.equal((await ask(app, id, bearer(keys.owner, organizations.theirs))).status, 404)
      assert.equal((await ask(app, 'none', bearer(keys.owner))).status, 404)
      for (const wrong of ['', 'dtn_wrong', keys.proxy, keys.runner, 'eyJhbGciOiJub25lIn0.e30.']) {
        assert.equal((await ask(app, id, bearer(wrong))).status, 401, wrong)
      }
      const none = { sandboxIdOrName: id, credentials: [], countsAsActivity: false }
      assert.equal((await app.as('proxy').post('/proxy/access', none)).status, 401)
    }))

  test('POST /proxy/access answers 404 for a deleted sandbox’s id, even if another sandbox has that id as its name', () =>
    withBox(async (app, id) => {
      const other = (await app.as('member').post('/sandbox', { name: 'other' })).body
      await app.database.sql`
        update sandboxes set state = 'destroyed', desired_state = 'destroyed', name = 'DESTROYED_box' where id = ${id}`
      await app.database.sql`update sandboxes set name = ${id} where id = ${other.id}`
      assert.equal((await askPort(app, id, 80, [bearer(keys.member)])).status, 404)
      for (const path of ['', '/ports/80/preview-url', '/signing-key', '/telemetry/metrics']) {
        assert.equal((await app.as('member').get(`/sandbox/${id}${path}`)).status, 404, path)
      }
      assert.equal((await app.as('owner').delete(`/sandbox/${id}`)).status, 404)
      assert.equal((await ask(app, other.id, bearer(keys.member))).status, 200)
    }))

  test('POST /proxy/access answers 200 if any of the credentials is valid, even after invalid credentials', () =>
    withBox(async (app, id) => {
      const { token } = (await app.as('member').get('/sandbox/box/ports/80/preview-url')).body
      const credentials = [
        bearer(keys.stranger),
        { kind: 'preview-header', token: 'x' },
        { kind: 'preview-query', token },
      ]
      const { status, body } = await app
        .as('proxy')
        .post('/proxy/access', { sandboxIdOrName: id, credentials, countsAsActivity: false })
      assert.deepEqual([status, body.openedBy, body.isBearerOurs], [200, 'preview-query', true])
      const twice = [bearer(keys.member), { kind: 'preview-query', token }]
      assert.equal((await askPort(app, 'box', 80, twice)).body.openedBy, 'bearer')
      assert.equal((await askPort(app, 'box', 80, [bearer('of-the-app'), ...twice.slice(1)])).body.isBearerOurs, false)
    }))

  test('POST /proxy/access answers 200 to the sandbox’s own preview token, and 401 to another sandbox’s', () =>
    withBox(async (app, id) => {
      const tokenOf = async (name: string) =>
        (await app.as('member').get(`/sandbox/${name}/ports/80/preview-url`)).body.token as string
      const token = await tokenOf('box')
      await app.as('member').post('/sandbox', { name: 'other' })
      assert.equal((await ask(app, id, { kind: 'preview-header', token })).status, 200)
      assert.equal((await ask(app, 'box', { kind: 'preview-header', token })).status, 200)
      assert.equal((await ask(app, id, { kind: 'preview-header', token: await tokenOf('other') })).status, 401)
      assert.equal((await ask(app, id, { kind: 'preview-header', token: '' })).status, 401)
    }))

  test('POST /proxy/access answers 401 to a preview token from before the last start of the sandbox', () =>
    withBox(async (app, id) => {
      const tokenNow = async () =>
        (await app.as('member').get('/sandbox/box/ports/80/preview-url')).body.token as string
      const token = await tokenNow()
      await app.as('member').post('/sandbox/box/start')
      assert.equal(await tokenNow(), token)
      await app.as('member').post('/sandbox/box/stop')
      await untilState(app, id, 'stopped')
      await app.as('member').post('/sandbox/box/start')
      await untilState(app, id, 'started')
      assert.equal((await ask(app, id, { kind: 'preview-header', token })).status, 401)
      assert.equal((await ask(app, id, { kind: 'preview-header', token: await tokenNow() })).status, 200)
    }))

  test('POST /proxy/access answers 200 without a credential for a port of a public sandbox, but 401 for its toolbox', () =>
    withBox(async (app, id) => {
      assert.equal((await askPort(app, id, 80)).status, 401)
      await app.as('member').post('/sandbox/box/public/true')
      const { status, body } = await askPort(app, id, 80)
      assert.deepEqual([status, body.openedBy, body.sandboxId], [200, 'public', id])
      assert.equal((await askPort(app, id, 80, [bearer(keys.stranger)])).body.openedBy, 'public')
      assert.equal((await askPort(app, 'box', 80)).status, 401)
      const toolbox = { sandboxIdOrName: id, credentials: [], countsAsActivity: false }
      assert.equal((await app.as('proxy').post('/proxy/access', toolbox)).status, 401)
      await app.as('member').post('/sandbox/box/public/false')
      assert.equal((await askPort(app, id, 80)).status, 401)
    }))

  test('POST /proxy/access returns whether the organization wants a warning page before its previews', () =>
    withBox(async (app, id) => {
      await app.database.sql`update organizations set preview_warning_enabled = true where id = ${organizations.ours}`
      assert.equal((await askPort(app, id, 80, [bearer(keys.member)])).body.warnsVisitors, true)
      assert.equal((await ask(app, id, bearer(keys.member))).body.warnsVisitors, false)
    }))

  test('POST /proxy/access returns `hostInside: "localhost"` only if the sandbox’s label `preview-host` has this value', () =>
    withBox(async (app, id) => {
      const hostInside = async () => (await askPort(app, id, 80, [bearer(keys.member)])).body.hostInside
      assert.equal(await hostInside(), undefined)
      for (const [value, expected] of [
        ['localhost', 'localhost'],
        ['evil.test', undefined],
      ] as const) {
        await app.as('member').put(`/sandbox/${id}/labels`, { labels: { 'preview-host': value } })
        assert.equal(await hostInside(), expected)
      }
    }))

  test('POST /proxy/access accepts a signed preview URL until it expires; open connections may last longer', () =>
    withBox(async (app, id) => {
      const signed = await app.as('member').get('/sandbox/box/ports/3000/signed-preview-url?expiresInSeconds=90')
      const { token } = signed.body
      const { status, body } = await askPort(app, token, 3000)
      assert.deepEqual([status, body.openedBy, body.sandboxId], [200, 'signed-preview', id])
      assert.equal((await askPort(app, token, 3001)).status, 401)
      const toolbox = { sandboxIdOrName: token, credentials: [], countsAsActivity: false }
      assert.equal((await app.as('proxy').post('/proxy/access', toolbox)).status, 401)
      app.clock.advance({ seconds: 91 })
      assert.equal((await askPort(app, token, 3000)).status, 401)
      assert.equal((await askPort(app, token, 3000, [], { wasLetIn: true })).status, 200)
    }))

  test('POST /proxy/access accepts a signed toolbox URL until the URL is revoked; a public sandbox’s toolbox is not public', () =>
    withBox(async (app, id) => {
      const signed = '/sandbox/box/ports/2280/signed-preview-url'
      const { token } = (await app.as('member').get(signed)).body
      const { status, body } = await askPort(app, token, 2280)
      assert.deepEqual([status, body.openedBy, body.sandboxId], [200, 'signed-preview', id])
      assert.equal((await askPort(app, token, 3000)).status, 401)
      const other = (await app.as('member').get('/sandbox/box/ports/3000/signed-preview-url')).body
      assert.equal((await askPort(app, other.token, 2280)).status, 401)
      assert.equal((await app.as('member').post(`${signed}/${token}/expire`)).status, 200)
      assert.equal((await askPort(app, token, 2280)).status, 401)
      await app.as('member').post('/sandbox/box/public/true')
      assert.equal((await askPort(app, id, 3000)).status, 200)
      assert.equal((await askPort(app, id, 2280)).status, 401)
    }))

  test('POST /proxy/access accepts a signed file URL until it expires or the sandbox’s signing key is replaced', () =>
    withBox(async (app, id) => {
      const keyNow = async () => (await app.as('member').get('/sandbox/box/signing-key')).body as string
      const key = await keyNow()
      const now = Math.floor(app.clock.now().getTime() / 1000)
      const good = sign(key, 'GET', '/home/a b', String(now + 60))
      const { status, body } = await ask(app, id, good)
      assert.deepEqual([status, body.openedBy], [200, 'file-signature'])
      assert.equal((await ask(app, id, sign(key, 'GET', '/x', '0'))).status, 200)
      for (const [what, wrong] of Object.entries({
        'another path': { ...good, path: '/home/a' },
        'another method': { ...good, method: 'POST' },
        'another time': { ...good, expires: String(now + 61) },
        'the past': sign(key, 'GET', '/x', String(now)),
        'another key': sign('other', 'GET', '/x', '0'),
        'no time': sign(key, 'GET', '/x', ''),
        'time otherwise written': sign(key, 'GET', '/x', `0${now + 60}`),
        'never otherwise written': sign(key, 'GET', '/x', '00'),
        nothing: { ...good, signature: '' },
        'a part': { ...good, signature: good.signature.slice(0, -1) },
        'no version': { ...good, signature: good.signature.slice(3) },
      })) {
        assert.equal((await ask(app, id, wrong)).status, 401, what)
      }
      assert.equal((await ask(app, 'box', good)).status, 401)
      assert.equal((await askPort(app, id, 80, [good])).status, 401)
      app.clock.advance({ seconds: 60 })
      assert.equal((await ask(app, id, good)).status, 401)
      const open = { sandboxIdOrName: id, credentials: [good], countsAsActivity: false, wasLetIn: true }
      assert.equal((await app.as('proxy').post('/proxy/access', open)).status, 200)
      await app.as('member').post('/sandbox/box/signing-key/rotate')
      assert.equal((await app.as('proxy').post('/proxy/access', open)).status, 401)
      assert.equal((await ask(app, id, sign(key, 'GET', '/x', '0'))).status, 401)
      assert.equal((await ask(app, id, sign(await keyNow(), 'GET', '/x', '0'))).status, 200)
    }))

  test('POST /proxy/access answers 401 to an expired API key, even for a connection that was admitted before the expiry', () =>
    withBox(async (app, id) => {
      const expiresAt = new Date(app.clock.now().getTime() + 60_000).toISOString()
      const made = await app.as('owner').post('/api-keys', { name: 'short', permissions: [], expiresAt })
      const credentials = [bearer(made.body.value)]
      const open = { sandboxIdOrName: id, credentials, countsAsActivity: false, wasLetIn: true }
      assert.equal((await app.as('proxy').post('/proxy/access', open)).status, 200)
      app.clock.advance({ seconds: 61 })
      assert.equal((await app.as('proxy').post('/proxy/access', open)).status, 401)
    }))

  test('POST /proxy/access answers `isStarted: false` for a stopped sandbox', () =>
    withBox(async (app, id) => {
      await app.as('member').post('/sandbox/box/stop')
      await untilState(app, id, 'stopped')
      const { body } = await ask(app, id, bearer(keys.member))
      assert.deepEqual([body.isStarted, body.state], [false, 'stopped'])
    }))

  test('POST /proxy/access answers 200 for a sandbox that has no runner yet, and 502 if the sandbox’s runner has no address', () =>
    withBox(async (app, id) => {
      const buildInfo = { dockerfileContent: 'FROM alpine:3.20\n' }
      const waiting = (await app.as('member').post('/sandbox', { buildInfo })).body
      const { status, body } = await ask(app, waiting.id, bearer(keys.member))
      assert.deepEqual([status, body.isStarted, body.state, body.runnerAddress], [200, false, 'pending_build', ''])
      await app.database.sql`update runners set address = null`
      assert.equal((await ask(app, id, bearer(keys.member))).status, 502)
    }))

  test('POST /proxy/access records a call as activity if the gate asks for that, at most every 10 seconds', () =>
    withBox(async (app, id) => {
      const last = async () => Date.parse((await app.as('member').get(`/sandbox/${id}`)).body.lastActivityAt)
      const start = await last()
      app.clock.advance({ seconds: 30 })
      await ask(app, id, bearer(keys.member), false)
      assert.equal(await last(), start)
      await ask(app, id, bearer(keys.member), true)
      assert.equal(await last(), start + 30_000)
      app.clock.advance({ seconds: 9 })
      await ask(app, id, bearer(keys.member), true)
      assert.equal(await last(), start + 30_000)
      app.clock.advance({ seconds: 1 })
      await ask(app, id, bearer(keys.member), true)
      assert.equal(await last(), start + 40_000)
      // The clock is set back by an hour, so the stored time of the last activity is in the future.
      app.clock.advance({ hours: -1 })
      await ask(app, id, bearer(keys.member), true)
      assert.equal(await last(), start + 40_000 - 3_600_000)
    }))

  test('POST /proxy/access answers 403 to users, 401 without a credential, and 400 for a malformed body', () =>
    withBox(async (app, id) => {
      const question = { sandboxIdOrName: id, credentials: [], countsAsActivity: false }
      assert.equal((await app.as('owner').post('/proxy/access', question)).status, 403)
      assert.equal((await app.as('nobody').post('/proxy/access', question)).status, 401)
      for (const wrong of [
        {},
        { ...question, credentials: [{ kind: 'magic' }] },
        { ...question, sandboxIdOrName: '' },
      ]) {
        assert.equal((await app.as('proxy').post('/proxy/access', wrong)).status, 400)
      }
    }))
})
