import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'

const withBox = async (check: (app: TestControl, id: string) => Promise<void>) => {
  await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
  await using _runner = await connectRunner(app)
  const { body } = await app.as('member').post('/sandbox', { name: 'box' })
  await check(app, body.id)
}

const noPorts = ['0', '65536', 'x', '-1', '1.5', '22222', '33333']

const opens = async (app: TestControl, token: string, port: number) => {
  const question = { sandboxIdOrName: token, credentials: [], port, countsAsActivity: false }
  return (await app.as('proxy').post('/proxy/access', question)).status === 200
}

suite('the URLs of previews', () => {
  test('GET /sandbox/:sandboxIdOrName/ports/:port/preview-url answers 200 for a port, 400 for reserved or invalid ports', () =>
    withBox(async (app, id) => {
      const { status, body } = await app.as('viewer').get('/sandbox/box/ports/3000/preview-url')
      assert.equal(status, 200)
      assert.deepEqual([body.sandboxId, body.url], [id, `http://3000-${id}.proxy.test:3001`])
      assert.ok(body.token.length >= 32)
      const toolbox = (await app.as('viewer').get('/sandbox/box/ports/2280/preview-url')).body
      assert.deepEqual([toolbox.url, toolbox.token], [`http://2280-${id}.proxy.test:3001`, body.token])
      for (const port of noPorts) {
        assert.equal((await app.as('viewer').get(`/sandbox/box/ports/${port}/preview-url`)).status, 400, port)
      }
    }))

  test('GET /sandbox/:sandboxIdOrName/ports/:port/signed-preview-url returns a URL with a new token that is valid for 60 s', () =>
    withBox(async (app, id) => {
      const { status, body } = await app.as('viewer').get('/sandbox/box/ports/3000/signed-preview-url')
      assert.equal(status, 200)
      assert.match(body.token, /^[a-z0-9]{16}$/)
      assert.deepEqual(body, {
        sandboxId: id,
        port: 3000,
        token: body.token,
        url: `http://3000-${body.token}.proxy.test:3001`,
      })
      const again = await app.as('viewer').get('/sandbox/box/ports/3000/signed-preview-url')
      assert.notEqual(again.body.token, body.token)
      app.clock.advance({ seconds: 59 })
      assert.ok(await opens(app, body.token, 3000))
      app.clock.advance({ seconds: 1 })
      assert.ok(!(await opens(app, body.token, 3000)))
    }))

  test('GET /sandbox/:sandboxIdOrName/ports/:port/signed-preview-url answers 400 for an invalid port, and for a lifetime under 1 s or over a day', () =>
    withBox(async (app) => {
      const sign = (port: string, query = '') =>
        app.as('member').get(`/sandbox/box/ports/${port}/signed-preview-url${query}`)
      for (const seconds of ['1', '86400']) {
        assert.equal((await sign('80', `?expiresInSeconds=${seconds}`)).status, 200, seconds)
      }
      for (const seconds of ['0', '-1', '86401', '1.5', 'x']) {
        assert.equal((await sign('80', `?expiresInSeconds=${seconds}`)).status, 400, seconds)
      }
      for (const port of noPorts) assert.equal((await sign(port)).status, 400, port)
      assert.equal((await app.as('stranger').get('/sandbox/box/ports/80/signed-preview-url')).status, 404)
    }))

  test('GET /sandbox/:sandboxIdOrName/ports/:port/signed-preview-url answers 429 while 1000 URLs of the sandbox are valid', () =>
    withBox(async (app, id) => {
      const sign = () => app.as('member').get('/sandbox/box/ports/80/signed-preview-url?expiresInSeconds=100')
      const now = app.clock.now()
      await app.database.sql`
        insert into signed_previews (token_hash, sandbox_id, port, created_at, expires_at)
        select encode(sha256(n::text::bytea), 'hex'), ${id}, 80, ${now}, ${new Date(now.getTime() + 60_000)}
        from generate_series(1, 1000) n`
      assert.equal((await sign()).status, 429)
      app.clock.advance({ seconds: 61 })
      assert.equal((await sign()).status, 200)
    }))

  test('POST /sandbox/:sandboxIdOrName/ports/:port/signed-preview-url/:token/expire revokes the URL, and answers 404 for a wrong port or token', () =>
    withBox(async (app) => {
      const { token } = (await app.as('member').get('/sandbox/box/ports/80/signed-preview-url')).body
      const path = (port: number, given: string) => `/sandbox/box/ports/${port}/signed-preview-url/${given}/expire`
      for (const [port, given] of [
        [81, token],
        [80, 'abcdefghijklmnop'],
        [80, 'x'],
      ] as const) {
        assert.equal((await app.as('member').post(path(port, given))).status, 404)
      }
      assert.equal((await app.as('stranger').post(path(80, token))).status, 404)
      assert.ok(await opens(app, token, 80))
      const { status, text } = await app.as('viewer').post(path(80, token))
      assert.deepEqual([status, text], [200, ''])
      assert.ok(!(await opens(app, token, 80)))
      assert.equal((await app.as('member').post(path(80, token))).status, 404)
    }))

  test('only a hash of a signed preview URL’s token is stored, and is deleted together with the sandbox', () =>
    withBox(async (app) => {
      const { token } = (await app.as('member').get('/sandbox/box/ports/80/signed-preview-url')).body
      const rows = await app.database.sql`select * from signed_previews`
      assert.equal(rows.length, 1)
      assert.ok(!JSON.stringify(rows).includes(token))
      await app.database.sql`delete from sandboxes where organization_id = ${organizations.ours}`
      assert.equal((await app.database.sql`select * from signed_previews`).length, 0)
    }))
})
