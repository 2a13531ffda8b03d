import assert from 'node:assert/strict'
import { once } from 'node:events'
import { suite, test } from 'node:test'
import { WebSocket } from 'ws'
import { questionOf, readTarget } from '#src/gate/target.ts'
import { type AccessAhead, keyOfQuestion } from '#src/wire/access.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys, organizations } from '#test/control/people.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'

const waits = { sandboxes: { createWaitSeconds: 20, momentMilliseconds: 20_000 } }

/** Connects a gate that stores the messages it receives. */
const link = async (app: TestControl, key: string) => {
  const base = (await app.listen()).replace('http', 'ws')
  const socket = new WebSocket(`${base}/api/proxy/link`, { headers: { authorization: `Bearer ${key}` } })
  const told: AccessAhead[] = []
  socket.on('message', (data) => told.push(JSON.parse(String(data))))
  await once(socket, 'open')
  return {
    told,
    /** Resolves when all messages that control has sent so far have arrived. */
    settled: async () => {
      socket.ping()
      await once(socket, 'pong')
    },
    async [Symbol.asyncDispose]() {
      socket.terminate()
    },
  }
}

/** Returns the hash of the question that a gate asks when a caller with these headers runs a command in the sandbox. */
const asked = (sandboxId: string, headers: Record<string, string>) =>
  keyOfQuestion(questionOf(headers, readTarget(`/toolbox/${sandboxId}/process/execute`, 'POST')))

suite('GET /proxy/link', () => {
  test('control tells a gate who may reach a new sandbox before the caller gets the reply to the create', async () => {
    await using app = await startControl(waits)
    await using _runner = await connectRunner(app)
    await using proxy = await link(app, keys.proxy)
    const { body: made } = await app.as('owner').post('/sandbox', {})
    const { body: access } = await app.as('proxy').post('/proxy/access', {
      sandboxIdOrName: made.id,
      credentials: [{ kind: 'bearer', token: keys.owner }],
      countsAsActivity: true,
    })
    await proxy.settled()
    const [ahead] = proxy.told
    assert.deepEqual(ahead?.access, access)
    assert.equal(ahead?.question, asked(made.id, { authorization: `Bearer ${keys.owner}` }))
    assert.equal(ahead?.at, app.clock.now().getTime())
    assert.ok(!JSON.stringify(proxy.told).includes(keys.owner), 'no key goes over the link')
  })

  test('control tells gates in advance who may reach a fork or a restarted sandbox', async () => {
    await using app = await startControl(waits)
    await using _runner = await connectRunner(app)
    const { body: made } = await app.as('owner').post('/sandbox', {})
    await app.as('owner').post(`/sandbox/${made.id}/pause`)
    await untilState(app, made.id, 'paused')
    await using proxy = await link(app, keys.proxy)
    assert.equal((await app.as('owner').post(`/sandbox/${made.id}/start`)).body.state, 'started')
    const headers = { 'x-daytona-organization-id': organizations.ours }
    const fork = (await app.as('owner').post(`/sandbox/${made.id}/fork`, {}, { headers })).body
    assert.equal(fork.state, 'started')
    await proxy.settled()
    assert.deepEqual(
      proxy.told.map(({ question }) => question),
      [
        asked(made.id, { authorization: `Bearer ${keys.owner}` }),
        asked(fork.id, { authorization: `Bearer ${keys.owner}`, ...headers }),
      ],
    )
  })

  test('control tells gates nothing in advance about a sandbox that does not run yet', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 0 } })
    await using runner = await connectRunner(app)
    runner.behave(() => ({ type: 'silent' }))
    await using proxy = await link(app, keys.proxy)
    assert.equal((await app.as('owner').post('/sandbox', {})).body.state, 'creating')
    await proxy.settled()
    assert.deepEqual(proxy.told, [])
  })

  test('GET /proxy/link answers 403 to users, 401 to runners, and 400 without a WebSocket upgrade', async () => {
    await using app = await startControl()
    assert.equal((await app.as('owner').get('/proxy/link')).status, 403)
    assert.equal((await app.as('runner').get('/proxy/link')).status, 401)
    assert.equal((await app.as('proxy').get('/proxy/link')).status, 400)
  })
})
