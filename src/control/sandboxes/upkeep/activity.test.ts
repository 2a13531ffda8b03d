// Tests which API calls are activity of a sandbox (docs/reference/activity.md). test/sandboxes/activity.test.ts tests toolboxes,
// previews and open connections, because the gate reports their use.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { connectRunner, type SimulatedRunner, untilState } from '#test/control/simulated-runner.ts'

type Life = { app: TestControl; runner: SimulatedRunner; id: string }

const call = (method: 'get' | 'post' | 'put', path: string, body?: object) => async (life: Life) => {
  const client = life.app.as('member')
  const full = `/sandbox/box${path}`
  const reply = method === 'get' ? await client.get(full) : await client[method](full, body)
  assert.ok(reply.status < 300, `${method} ${path}: ${reply.status} ${reply.text}`)
}

const thenStarted =
  (...steps: ((life: Life) => Promise<void>)[]) =>
  async (life: Life) => {
    for (const step of steps) await step(life)
    await untilState(life.app, life.id, 'started')
  }

const until = (state: 'stopped' | 'paused') => (life: Life) => untilState(life.app, life.id, state)

const counts: Record<string, (life: Life) => Promise<void>> = {
  'POST last-activity': call('post', '/last-activity'),
  'POST autostop/{interval}': call('post', '/autostop/30'),
  'POST autopause/{interval}': call('post', '/autopause/0'),
  'a start': thenStarted(call('post', '/stop'), until('stopped'), call('post', '/start')),
  'a resume': thenStarted(call('post', '/pause'), until('paused'), call('post', '/start')),
  'a snapshot of it, when it is done': async ({ app, runner, id }) => {
    runner.behaveWithImages(() => 'do')
    const reply = await app.as('owner').post('/sandbox/box/snapshot', { name: 'kept' })
    assert.ok(reply.status < 300, reply.text)
    await untilState(app, id, 'started')
  },
  'a recover': async (life) => {
    const { generation } = await life.runner.untilAsked(({ sandboxId }) => sandboxId === life.id)
    life.runner.report({ sandboxId: life.id, generation, state: 'error', errorReason: 'lost', recoverable: true })
    await untilState(life.app, life.id, 'error')
    await call('post', '/recover')(life)
    await untilState(life.app, life.id, 'started')
  },
  'a resize': thenStarted(call('post', '/resize', { cpu: 2 })),
}

const countsNot: Record<string, (life: Life) => Promise<void>> = {
  'GET of the sandbox': call('get', ''),
  'GET of its timeline': call('get', '/events'),
  'GET of an address of a preview': call('get', '/ports/3000/preview-url'),
  'GET of the list': async ({ app }) => assert.equal((await app.as('member').get('/sandbox')).status, 200),
  'PUT labels': call('put', '/labels', { labels: { a: 'b' } }),
  'POST public/{isPublic}': call('post', '/public/true'),
  'POST autoarchive/{interval}': call('post', '/autoarchive/60'),
  'POST autodelete/{interval}': call('post', '/autodelete/60'),
  'a mishap inside': async ({ app, runner, id }) => {
    runner.say({ type: 'mishap', sandboxId: id, cause: { oomKilled: true } })
    const told = () => app.database.sql`select from sandbox_events where sandbox_id = ${id} and from_state = to_state`
    while ((await told()).count === 0) await new Promise(setImmediate)
  },
}

suite('the activity of a sandbox', () => {
  const withBox = async (run: (life: Life, lastActivity: () => Promise<number>) => Promise<void>) => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using runner = await connectRunner(app)
    const { id } = (await app.as('member').post('/sandbox', { name: 'box', autoStopInterval: 15 })).body
    const last = async () => Date.parse((await app.as('viewer').get('/sandbox/box')).body.lastActivityAt)
    await run({ app, runner, id }, last)
  }

  test('each use and each start of a sandbox restarts its idle time', () =>
    withBox(async (life, lastActivity) => {
      for (const [title, use] of Object.entries(counts)) {
        life.app.clock.advance({ minutes: 1 })
        await use(life)
        assert.equal(await lastActivity(), life.app.clock.now().getTime(), title)
      }
    }))

  test('reads, listings, label changes and processes inside a sandbox do not restart its idle time', () =>
    withBox(async (life, lastActivity) => {
      const before = await lastActivity()
      for (const [title, use] of Object.entries(countsNot)) {
        life.app.clock.advance({ seconds: 30 })
        await use(life)
        assert.equal(await lastActivity(), before, title)
      }
    }))
})
