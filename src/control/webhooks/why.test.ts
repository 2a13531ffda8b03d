// Webhook messages and dashboard events about a sandbox contain the same actor and the same cause as its timeline.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { suite, test } from 'node:test'
import { WebSocket } from 'ws'
import type { SandboxEvent } from '#src/control/sandboxes/record/schemas.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys, organizations, userId } from '#test/control/people.ts'
import { connectRunner, type SimulatedRunner, untilState } from '#test/control/simulated-runner.ts'
import { loopback } from '#test/control/test-settings.ts'
import { type Received, type Receiver, startReceiver } from '#test/control/webhook-receiver.ts'

const { ours } = organizations

const oom = { oomKilled: true, signal: 'SIGKILL', detail: 'It ran out of memory (limit 1 GiB) and was killed.' }
const labels = { team: 'blue' }
const wish = { name: 'box', labels, env: { TOKEN: 'not-for-receivers' }, autoStopInterval: 15 }

/** Connects to the event socket as a dashboard does. Returns all events that it gets, as name and payload. */
const watch = async (base: string) => {
  const socket = new WebSocket(`${base.replace('http', 'ws')}/api/socket.io/?EIO=4&transport=websocket`)
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts on what it expects to be there
  const heard: [name: string, payload: any][] = []
  const signedIn = Promise.withResolvers<void>()
  let wake = () => {}
  socket.on('message', (data) => {
    const text = String(data)
    if (text.startsWith('0')) socket.send(`40${JSON.stringify({ token: keys.viewer })}`)
    if (text.startsWith('40')) signedIn.resolve()
    if (text.startsWith('42')) heard.push(JSON.parse(text.slice(2)))
    wake()
  })
  await once(socket, 'open')
  await signedIn.promise
  const until = async (count: number) => {
    while (heard.length < count)
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    return heard
  }
  return { until, [Symbol.dispose]: () => socket.terminate() }
}

/**
 * Waits for `count` different messages. A message can arrive twice, because a sender's lease ends early when the test
 * moves the clock.
 */
const untilDistinct = async (receiver: Receiver, count: number): Promise<Received[]> => {
  for (let wanted = count; ; ) {
    const all = await receiver.until(wanted)
    const distinct = all.filter(({ id }, index) => all.findIndex((one) => one.id === id) === index)
    if (distinct.length >= count) return distinct
    wanted = all.length + 1
  }
}

type Life = { app: TestControl; runner: SimulatedRunner; id: string }

/** A case of the test: what happens to a sandbox that has started, and which event is expected. */
type Case = {
  title: string
  happen: (life: Life) => Promise<unknown>
  /** Number of timeline events that the case causes. */
  events: number
  /** Returns whether a timeline event is the one that this case tests. */
  is: (event: SandboxEvent) => boolean
  by: (life: Life) => Promise<SandboxEvent['by']>
  reason: string | RegExp | undefined
  cause?: object
  name: 'sandbox.state.updated' | 'sandbox.mishap'
}

const runnerOf = async ({ app, id }: Life) => {
  const [row] = await app.database.sql<{ runnerId: string }[]>`
    select runner_id as "runnerId" from sandboxes where id = ${id}`
  return { kind: 'runner', id: row?.runnerId ?? '' } as const
}

const cases: Case[] = [
  {
    title: 'the webhook and the event about an auto-stop name the timer and its minutes',
    happen: async ({ app, id }) => {
      await app.pass({ minutes: 15 })
      await app.sweep()
      await untilState(app, id, 'stopped')
    },
    events: 2,
    is: ({ to }) => to === 'stopping',
    by: async () => ({ kind: 'timer', id: 'auto-stop' }),
    reason: 'Stopped after 15 minutes without activity.',
    name: 'sandbox.state.updated',
  },
  {
    title: 'the webhook and the event about a process killed for memory name the runner and the cause',
    happen: async ({ runner, id }) => {
      // Control knows no sandbox `nobody`, so it sends no message for the first report.
      runner.say({ type: 'mishap', sandboxId: 'nobody', cause: oom })
      runner.say({ type: 'mishap', sandboxId: id, cause: oom })
    },
    events: 1,
    is: ({ from, to }) => from === to,
    by: runnerOf,
    reason: oom.detail,
    cause: oom,
    name: 'sandbox.mishap',
  },
  {
    title: 'the webhook and the event about a memory kill that ends the sandbox name the runner and the cause',
    happen: async ({ app, runner, id }) => {
      const { generation } = await runner.untilAsked(({ sandboxId }) => sandboxId === id)
      runner.report({
        sandboxId: id,
        generation,
        state: 'error',
        errorReason: oom.detail,
        recoverable: true,
        cause: oom,
      })
      await untilState(app, id, 'error')
    },
    events: 1,
    is: ({ to }) => to === 'error',
    by: runnerOf,
    reason: oom.detail,
    cause: oom,
    name: 'sandbox.state.updated',
  },
  {
    title: 'the webhook and the event about a stop by API key name the key’s user',
    happen: async ({ app, id }) => {
      await app.as('member').post('/sandbox/box/stop')
      await untilState(app, id, 'stopped')
    },
    events: 2,
    is: ({ to }) => to === 'stopping',
    by: async () => ({ kind: 'user', id: userId('member') }),
    reason: undefined,
    name: 'sandbox.state.updated',
  },
  {
    title: 'the webhook and the event about a failed archive name the runner and its reason',
    happen: async ({ app, runner, id }) => {
      await app.as('member').post('/sandbox/box/stop')
      await untilState(app, id, 'stopped')
      runner.behave(({ target }) =>
        target === 'archived' ? { type: 'refuse', reason: 'The store is full.', state: 'stopped' } : { type: 'do' },
      )
      await app.as('member').post('/sandbox/box/archive')
      await untilState(app, id, 'stopped')
    },
    events: 4,
    is: ({ from }) => from === 'archiving',
    by: runnerOf,
    reason: 'The store is full.',
    name: 'sandbox.state.updated',
  },
  {
    title: 'the webhook and the event about a lost host name the timer and the host',
    happen: async ({ app }) => {
      app.clock.advance({ minutes: 1 })
      assert.equal((await app.as('admin').post('/runners/local/lost')).status, 200)
    },
    events: 1,
    is: ({ to }) => to === 'error',
    by: async () => ({ kind: 'timer', id: 'lost-runner' }),
    reason: /^Its host "local" has not answered since .* and is given up\./,
    name: 'sandbox.state.updated',
  },
  {
    title: 'the webhook and the event about an eviction name the operator and the sandbox’s old name',
    happen: ({ app, id }) => app.as('admin').post(`/sandbox/${id}/evict`),
    events: 2,
    is: ({ to }) => to === 'destroying',
    by: async ({ app }) => ({ kind: 'user', id: (await app.as('admin').get('/users/me')).body.id }),
    reason: 'Evicted: its room was needed.',
    name: 'sandbox.state.updated',
  },
]

suite('webhooks and dashboard events have the same reason as the timeline', () => {
  for (const { title, happen, events, is, by, reason, cause, name } of cases) {
    test(title, async () => {
      await using app = await startControl({
        settings: { privateTargets: loopback },
        sandboxes: { createWaitSeconds: 20 },
      })
      await using receiver = await startReceiver()
      await using runner = await connectRunner(app)
      await app.as('owner').post(`/webhooks/organizations/${ours}/endpoints`, { url: receiver.url })
      using dashboard = await watch(runner.base)
      const { id } = (await app.as('member').post('/sandbox', wish)).body
      await untilState(app, id, 'started')
      const life = { app, runner, id }
      await happen(life)

      const count = 2 + events
      const payloads = (await untilDistinct(receiver, count)).map(({ payload }) => payload)
      const { body } = await app.as('viewer').get(`/sandbox/${id}/events?order=asc`)
      const timeline = body.items as SandboxEvent[]
      assert.equal(timeline.length, count)
      const why = timeline.map(({ by, reason, cause }) => [by, reason, cause])
      assert.deepEqual(
        payloads.map(({ by, reason, cause }) => [by, reason, cause]),
        why,
      )
      const at = timeline.findIndex((event) => event.from !== null && is(event))
      const said = timeline[at]?.reason
      assert.deepEqual([why[at]?.[0], why[at]?.[2]], [await by(life), cause])
      if (reason instanceof RegExp) assert.match(said ?? '', reason)
      else assert.equal(said, reason)
      assert.equal(payloads[at].event, name)

      for (const payload of payloads) assert.deepEqual([payload.id, payload.name, payload.labels], [id, 'box', labels])
      for (const { text } of receiver.received) assert.doesNotMatch(text, /not-for-receivers|TOKEN/)

      // When a sandbox fails, the dashboard gets two events: the whole record of the sandbox, and its change of state.
      const heard = await dashboard.until(count + (timeline.some(({ to }) => to === 'error') ? 1 : 0))
      const told = heard.filter(([, { sandbox }]) => sandbox !== undefined)
      assert.deepEqual(
        told.map(([, { by, reason, cause }]) => [by, reason, cause]),
        why.slice(1),
      )
      const [eventName, { sandbox }] = told[at - 1] ?? ['', {}]
      assert.deepEqual([eventName, sandbox.id, sandbox.labels], [name, id, labels])
      assert.deepEqual(heard[0]?.[1].by, { kind: 'user', id: userId('member') })
    })
  }

  test('a webhook leaves out labels that are too long, and has all other fields', async () => {
    await using app = await startControl({
      settings: { privateTargets: loopback },
      sandboxes: { createWaitSeconds: 20 },
    })
    await using receiver = await startReceiver()
    await using _runner = await connectRunner(app)
    await app.as('owner').post(`/webhooks/organizations/${ours}/endpoints`, { url: receiver.url })
    await app.as('member').post('/sandbox', { name: 'box', labels: { long: 'x'.repeat(5000) } })
    const [created] = await receiver.until(1)
    const { event, name, by, labels: told } = created?.payload ?? {}
    assert.deepEqual(
      [event, name, by, told],
      ['sandbox.created', 'box', { kind: 'user', id: userId('member') }, undefined],
    )
  })

  test('the webhook about a failed snapshot contains the reason of the failure', async () => {
    await using app = await startControl({ settings: { privateTargets: loopback } })
    await using receiver = await startReceiver()
    await using runner = await connectRunner(app)
    await app.as('owner').post(`/webhooks/organizations/${ours}/endpoints`, { url: receiver.url })
    runner.behaveWithImages(() => 'fail')
    const made = await app.as('owner').post('/snapshots', { name: 'tools', imageName: 'docker.io/library/debian:12' })
    assert.equal(made.status, 200, made.text)
    const [failed] = await receiver.until(1, ({ payload }) => payload.newState === 'error')
    assert.deepEqual([failed?.payload.name, failed?.payload.reason], ['tools', 'The disk is full.'])
  })
})
