import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createApp } from '#src/control/app.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys, organizations } from '#test/control/people.ts'
import { connectRunner, type SimulatedRunner, untilState } from '#test/control/simulated-runner.ts'

const path = '/sandbox/box/network-settings'

const withBox = async (check: (app: TestControl, id: string, runner: SimulatedRunner) => Promise<void>) => {
  await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
  await using runner = await connectRunner(app)
  const { body } = await app.as('member').post('/sandbox', { name: 'box' })
  await check(app, body.id, runner)
}

suite('POST /sandbox/:sandboxIdOrName/network-settings', () => {
  test('POST /sandbox/:sandboxIdOrName/network-settings returns the record; the runner gets the new rules', () =>
    withBox(async (app, id, runner) => {
      const settings = { domainAllowList: 'Example.com, *.a.test', networkAllowList: '1.2.3.4/32' }
      const { status, body } = await app.as('member').post(path, settings)
      assert.deepEqual(
        [status, body.networkBlockAll, body.networkAllowList, body.domainAllowList, body.state],
        [200, false, '1.2.3.4/32', 'example.com,*.a.test', 'started'],
      )
      const asked = await runner.untilAsked(({ generation }) => generation === 2)
      const domains = ['example.com', '*.a.test']
      assert.deepEqual(asked.network, { blockAll: false, allowList: ['1.2.3.4/32'], domains })
      assert.equal(asked.target, 'started')
      assert.deepEqual((await app.as('viewer').get(`/sandbox/${id}`)).body.domainAllowList, 'example.com,*.a.test')
    }))

  test('POST /sandbox/:sandboxIdOrName/network-settings answers only after the runner has applied the network policy', () =>
    withBox(async (app, id, runner) => {
      runner.behave(() => ({ type: 'silent' }))
      let isAnswered = false
      const reply = app
        .as('member')
        .post(path, { networkBlockAll: true })
        .finally(() => {
          isAnswered = true
        })
      const asked = await runner.untilAsked(({ generation }) => generation === 2)
      // The runner has not applied the policy yet. A wrong early reply of control would arrive during these two calls.
      for (let call = 0; call < 2; call++) await app.as('member').get(`/sandbox/${id}`)
      assert.equal(isAnswered, false)
      runner.perform(asked)
      const { status, body } = await reply
      assert.deepEqual([status, body.networkBlockAll, body.state], [200, true, 'started'])
    }))

  test('POST /sandbox/:sandboxIdOrName/network-settings answers immediately if the runner has no link', () =>
    withBox(async (app, _id, runner) => {
      await runner.cut()
      // Waits until control has noticed that the runner's link is closed.
      while (app.app.sandboxes.links.ids().length > 0) await delay(5)
      const { status, body } = await app.as('member').post(path, { networkBlockAll: true })
      assert.deepEqual([status, body.networkBlockAll], [200, true])
    }))

  test('a change of network settings reaches a runner that is linked to another control process', () =>
    withBox(async (app, _id, runner) => {
      const other = await createApp(app.parts, { sweepSeconds: 0 })
      try {
        const { statusCode } = await other.server.inject({
          method: 'POST',
          url: `/api${path}`,
          headers: { authorization: `Bearer ${keys.member}` },
          payload: { networkBlockAll: true },
        })
        assert.equal(statusCode, 200)
        const asked = await runner.untilAsked(({ network }) => network.blockAll)
        assert.deepEqual([asked.generation, asked.target], [2, 'started'])
      } finally {
        await other.close()
      }
    }))

  test('POST /sandbox/:sandboxIdOrName/network-settings changes only the settings in the call; `networkBlockAll: false` alone removes both allow lists', () =>
    withBox(async (app) => {
      const after = async (settings: object) => {
        const { body } = await app.as('member').post(path, settings)
        return [body.networkBlockAll, body.networkAllowList, body.domainAllowList]
      }
      assert.deepEqual(await after({ domainAllowList: 'a.test' }), [false, undefined, 'a.test'])
      assert.deepEqual(await after({ networkAllowList: '1.2.3.0/24' }), [false, '1.2.3.0/24', 'a.test'])
      assert.deepEqual(await after({ networkBlockAll: true }), [true, '1.2.3.0/24', 'a.test'])
      assert.deepEqual(await after({ networkBlockAll: false, domainAllowList: 'b.test' }), [
        false,
        '1.2.3.0/24',
        'b.test',
      ])
      assert.deepEqual(await after({ networkAllowList: '' }), [false, undefined, 'b.test'])
      assert.deepEqual(await after({ networkBlockAll: false }), [false, undefined, undefined])
    }))

  test('POST /sandbox/:sandboxIdOrName/network-settings changes a stopped sandbox, with effect from its next start', () =>
    withBox(async (app, id, runner) => {
      await app.as('member').post('/sandbox/box/stop')
      await untilState(app, id, 'stopped')
      assert.equal((await app.as('member').post(path, { networkBlockAll: true })).body.state, 'stopped')
      await app.as('member').post('/sandbox/box/start')
      await untilState(app, id, 'started')
      assert.equal(runner.asked.at(-1)?.network.blockAll, true)
    }))

  test('POST /sandbox/:sandboxIdOrName/network-settings answers 400 for an invalid rule, and changes nothing', () =>
    withBox(async (app, _id, runner) => {
      const before = (await app.as('member').get('/sandbox/box')).body
      for (const [settings, says] of [
        [undefined, /body/],
        [{}, /must be given/],
        [{ networkBlockall: true }, /must be given/],
        [{ networkBlockAll: 'yes' }, /networkBlockAll/],
        [{ networkAllowList: '1.2.3.4' }, /networkAllowList/],
        [{ networkAllowList: ['1.2.3.4/32'] }, /networkAllowList/],
        [{ domainAllowList: 'a.test,*' }, /domainAllowList/],
        [{ networkBlockAll: true, domainAllowList: 'http://a.test' }, /domainAllowList/],
        [{ domainAllowList: 'x'.repeat(5000) }, /domainAllowList/],
      ] as const) {
        const reply = await app.as('member').post(path, settings)
        assert.equal(reply.status, 400, JSON.stringify(settings))
        assert.match(reply.body.message, says)
      }
      for (const [who, status] of [
        ['viewer', 403],
        ['stranger', 404],
        ['nobody', 401],
      ] as const) {
        assert.equal((await app.as(who).post(path, { networkBlockAll: true })).status, status, who)
      }
      assert.deepEqual((await app.as('member').get('/sandbox/box')).body, before)
      assert.equal(runner.asked.length, 1)
    }))
})

suite('an organization that limits outgoing traffic by default', () => {
  test('the organization’s setting blocks a new sandbox’s outgoing traffic; the create’s body can allow it', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using runner = await connectRunner(app)
    await app.database.sql`
      update organizations set sandbox_limited_network_egress = true where id = ${organizations.ours}`
    const made = async (body: object) => (await app.as('member').post('/sandbox', body)).body
    assert.equal((await made({})).networkBlockAll, true)
    assert.equal(runner.asked[0]?.network.blockAll, true)
    assert.equal((await made({ domainAllowList: 'a.test' })).networkBlockAll, false)
    assert.equal((await made({ networkBlockAll: false })).networkBlockAll, false)
  })
})
