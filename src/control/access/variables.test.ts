// Tests how a gate changes a sandbox's environment variables in control. Each time, the gate sends the ticket of a user's call.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys } from '#test/control/people.ts'
import { connectRunner, type SimulatedRunner, untilState } from '#test/control/simulated-runner.ts'

const withBox = async (check: (app: TestControl, id: string, runner: SimulatedRunner) => Promise<void>) => {
  await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
  await using runner = await connectRunner(app)
  const { body } = await app.as('member').post('/sandbox', { name: 'box', env: { A: '1' } })
  await check(app, body.id, runner)
}

const ticketFor = async (app: TestControl, sandboxIdOrName: string, more = {}): Promise<string> => {
  const credentials = [{ kind: 'bearer', token: keys.member }]
  const question = { sandboxIdOrName, credentials, countsAsActivity: false, ...more }
  return (await app.as('proxy').post('/proxy/access', question)).body.ticket
}

const inherited = { LANG: 'C' }

const change = async (app: TestControl, id: string, wanted: object) =>
  await app
    .as('proxy')
    .post('/proxy/env', { ticket: await ticketFor(app, id), inherited, set: {}, unset: [], ...wanted })

suite('POST /proxy/env', () => {
  test('POST /proxy/env changes a sandbox’s stored variables; later calls to the sandbox wait until its runner has them', () =>
    withBox(async (app, id, runner) => {
      const { status, body } = await change(app, id, { set: { B: '2' }, unset: ['LANG'] })
      assert.deepEqual([status, body], [200, { generation: 2 }])
      const asked = await runner.untilAsked(({ generation }) => generation === 2)
      assert.deepEqual([asked.env, asked.unsetEnv, asked.target], [{ A: '1', B: '2' }, ['LANG'], 'started'])
      assert.deepEqual((await app.as('member').get('/sandbox/box')).body.env, { A: '1', B: '2' })
      const question = {
        sandboxIdOrName: id,
        credentials: [{ kind: 'bearer', token: keys.member }],
        countsAsActivity: false,
      }
      assert.equal((await app.as('proxy').post('/proxy/access', question)).body.leastGeneration, 2)
    }))

  test('POST /proxy/env does not change the generation of the sandbox if no variable changes', () =>
    withBox(async (app, id, runner) => {
      assert.deepEqual((await change(app, id, { set: { A: '1' }, unset: ['B'] })).body, { generation: 1 })
      assert.equal(runner.asked.length, 1)
    }))

  test('concurrent changes of a sandbox’s variables all take effect', () =>
    withBox(async (app, id, runner) => {
      const names = Array.from({ length: 12 }, (_, n) => `N${n}`)
      const answers = await Promise.all(names.map((name) => change(app, id, { set: { [name]: name }, unset: ['A'] })))
      assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
      const expected = Object.fromEntries(names.map((name) => [name, name]))
      assert.deepEqual((await app.as('member').get('/sandbox/box')).body.env, expected)
      assert.deepEqual((await runner.untilAsked(({ generation }) => generation === 13)).env, expected)
    }))

  test('variables that are set while a sandbox is stopped apply at its next start and in its forks', () =>
    withBox(async (app, id, runner) => {
      const ticket = await ticketFor(app, id)
      await app.as('member').post('/sandbox/box/stop')
      await untilState(app, id, 'stopped')
      const given = { ticket, inherited, set: { B: '2' }, unset: ['LANG'] }
      assert.equal((await app.as('proxy').post('/proxy/env', given)).status, 200)
      await app.as('member').post('/sandbox/box/start')
      await untilState(app, id, 'started')
      const started = runner.asked.at(-1)
      assert.deepEqual([started?.env, started?.unsetEnv], [{ A: '1', B: '2' }, ['LANG']])
      const child = (await app.as('member').post('/sandbox/box/fork', {})).body
      const forked = await runner.untilAsked(({ sandboxId }) => sandboxId === child.id)
      assert.deepEqual([forked.env, forked.unsetEnv], [{ A: '1', B: '2' }, ['LANG']])
    }))

  test('POST /proxy/env answers 401 for an invalid ticket, 404 for a deleted sandbox, 400 for a variable’s invalid name', () =>
    withBox(async (app, id, runner) => {
      const ticket = await ticketFor(app, id)
      const statusFor = async (more: object) =>
        (await app.as('proxy').post('/proxy/env', { ticket, inherited, set: { B: '2' }, unset: [], ...more })).status
      assert.equal(await statusFor({ ticket: 'nonsense' }), 401)
      const otherEnd = ticket.endsWith('AA') ? 'QA' : 'AA'
      assert.equal(await statusFor({ ticket: `${ticket.slice(0, -2)}${otherEnd}` }), 401)
      assert.equal(await statusFor({ ticket: await ticketFor(app, id, { port: 3000 }) }), 401)
      assert.equal(await statusFor({ set: { 'A-B': '' } }), 400)
      assert.equal(await statusFor({ set: { A: null } }), 400)
      app.clock.advance({ seconds: 36 })
      assert.equal(await statusFor({}), 401)
      const fresh = await ticketFor(app, id)
      assert.equal(
        (await app.as('owner').post('/proxy/env', { ticket: fresh, inherited, set: {}, unset: [] })).status,
        403,
      )
      assert.equal(runner.asked.length, 1)
      assert.equal((await app.as('owner').delete('/sandbox/box')).status, 200)
      await untilState(app, id, 'destroyed')
      assert.equal(await statusFor({ ticket: fresh }), 404)
    }))
})
