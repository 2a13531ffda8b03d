import assert from 'node:assert/strict'
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
  app.as('proxy').post('/proxy/access', { sandboxIdOrName, credential, countsAsActivity })

suite('POST /proxy/access', () => {
  test('200 for any key of the organization, by id and by name', () =>
    withBox(async (app, id) => {
      for (const key of [keys.owner, keys.member, keys.viewer]) {
        for (const idOrName of [id, 'box']) {
          const { status, body } = await ask(app, idOrName, bearer(key))
          assert.equal(status, 200)
          assert.deepEqual(body, {
            sandboxId: id,
            organizationId: organizations.ours,
            runnerAddress: 'unix:/simulated/runner.sock',
            isStarted: true,
            state: 'started',
          })
        }
      }
      assert.equal((await ask(app, id, bearer(keys.viewer, organizations.ours))).status, 200)
    }))

  test('404 for a key of another organization, by whatever name it asks; 401 for no key', () =>
    withBox(async (app, id) => {
      assert.equal((await ask(app, id, bearer(keys.stranger))).status, 404)
      assert.equal((await ask(app, 'box', bearer(keys.stranger))).status, 404)
      assert.equal((await ask(app, id, bearer(keys.owner, organizations.theirs))).status, 404)
      assert.equal((await ask(app, 'none', bearer(keys.owner))).status, 404)
      for (const wrong of ['', 'dtn_wrong', keys.proxy, keys.runner, 'eyJhbGciOiJub25lIn0.e30.']) {
        assert.equal((await ask(app, id, bearer(wrong))).status, 401, wrong)
      }
      assert.equal((await ask(app, id, { kind: 'none' })).status, 401)
    }))

  test('200 for the preview token of this very sandbox and 401 for that of another', () =>
    withBox(async (app, id) => {
      const tokenOf = async (name: string) =>
        (await app.as('member').get(`/sandbox/${name}/ports/80/preview-url`)).body.token as string
      const token = await tokenOf('box')
      await app.as('member').post('/sandbox', { name: 'other' })
      assert.equal((await ask(app, id, { kind: 'preview-token', token })).status, 200)
      assert.equal((await ask(app, 'box', { kind: 'preview-token', token })).status, 200)
      assert.equal((await ask(app, id, { kind: 'preview-token', token: await tokenOf('other') })).status, 401)
      assert.equal((await ask(app, id, { kind: 'preview-token', token: '' })).status, 401)
    }))

  test('200 says when it is not started', () =>
    withBox(async (app, id) => {
      await app.as('member').post('/sandbox/box/stop')
      await untilState(app, id, 'stopped')
      const { body } = await ask(app, id, bearer(keys.member))
      assert.deepEqual([body.isStarted, body.state], [false, 'stopped'])
    }))

  test('200 counts as activity when told to, written at most every 10 s', () =>
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
    }))

  test('403 for users, 401 for nobody, 400 for what is no question', () =>
    withBox(async (app, id) => {
      const question = { sandboxIdOrName: id, credential: { kind: 'none' }, countsAsActivity: false }
      assert.equal((await app.as('owner').post('/proxy/access', question)).status, 403)
      assert.equal((await app.as('nobody').post('/proxy/access', question)).status, 401)
      for (const wrong of [{}, { ...question, credential: { kind: 'magic' } }, { ...question, sandboxIdOrName: '' }]) {
        assert.equal((await app.as('proxy').post('/proxy/access', wrong)).status, 400)
      }
    }))
})
