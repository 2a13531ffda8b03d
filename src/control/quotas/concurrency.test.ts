// Tests quotas with a hundred callers at the same time, at two control processes. Afterwards the usage is within the quota, and
// equals the sum over the sandboxes' rows.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createApp } from '#src/control/app.ts'
import { stateRows, statesUnderWay } from '#src/control/sandboxes/record/lifecycle.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys, organizations } from '#test/control/people.ts'
import { connectRunner, type SimulatedRunner } from '#test/control/simulated-runner.ts'
import { type Random, randomFrom } from '#test/faults/random.ts'

const { ours } = organizations
const callers = 100
const quota = { cpu: 12, memory: 20, disk: 60 }

type Ask = { method: 'POST' | 'DELETE'; path: string; body?: object }
type Row = { id: string; state: SandboxState; cpu: number; memory_gib: number; disk_gib: number }

const rowsOf = async ({ database }: TestControl): Promise<Row[]> => database.sql<Row[]>`
  select id, state, cpu, memory_gib, disk_gib from sandboxes
  where organization_id = ${ours} and state <> 'destroyed' order by id`

/** Starts two control processes on one database. Every second call goes to the second process. */
const startTwo = async () => {
  const app = await startControl({ sandboxes: { mostWarm: 0 } })
  const other = await createApp(app.parts, {
    sweepSeconds: 0,
    mostWarm: 0,
    createWaitSeconds: 0,
    momentMilliseconds: 0,
  })
  const limits = { totalCpuQuota: quota.cpu, totalMemoryQuota: quota.memory, totalDiskQuota: quota.disk }
  assert.equal((await app.as('admin').patch(`/organizations/${ours}/quota/local`, limits)).status, 204)
  let turn = 0
  const ask = async ({ method, path, body = {} }: Ask) => {
    turn += 1
    const { server } = turn % 2 === 0 ? app.app : other
    const authorization = `Bearer ${keys.owner}`
    const reply = await server.inject({ method, url: `/api${path}`, headers: { authorization }, payload: body })
    return { status: reply.statusCode, text: reply.body }
  }
  return {
    app,
    ask,
    [Symbol.asyncDispose]: async () => {
      await other.close()
      await app[Symbol.asyncDispose]()
    },
  }
}

/** Waits until no sandbox is changing its state. The link may lose an assignment, so the runner reads the list of assignments. */
const settle = async (app: TestControl, runner: SimulatedRunner): Promise<Row[]> => {
  const deadline = performance.now() + 60_000
  for (;;) {
    const rows = await rowsOf(app)
    const busy = rows.filter(({ state }) => statesUnderWay.includes(state))
    if (busy.length === 0) return rows
    if (performance.now() > deadline) throw new Error(`still under way: ${busy.map(({ state }) => state).join(', ')}`)
    await delay(50)
    await runner.takeList()
  }
}

const heldBy = (rows: readonly Row[]) => {
  const sum = (holds: 'holdsCompute' | 'holdsDisk', column: 'cpu' | 'memory_gib' | 'disk_gib') =>
    rows.reduce((total, row) => total + (stateRows[row.state][holds] ? row[column] : 0), 0)
  return {
    cpu: sum('holdsCompute', 'cpu'),
    memory: sum('holdsCompute', 'memory_gib'),
    disk: sum('holdsDisk', 'disk_gib'),
  }
}

const checkSettled = async (app: TestControl, rows: readonly Row[]) => {
  const held = heldBy(rows)
  const { regionUsage } = (await app.as('owner').get(`/organizations/${ours}/usage`)).body
  const [{ currentCpuUsage, currentMemoryUsage, currentDiskUsage }] = regionUsage
  assert.deepEqual({ cpu: currentCpuUsage, memory: currentMemoryUsage, disk: currentDiskUsage }, held)
  assert.ok(held.cpu <= quota.cpu && held.memory <= quota.memory && held.disk <= quota.disk, JSON.stringify(held))
  return held
}

const thinkOf = (random: Random, rows: readonly Row[]): Ask => {
  const size = () => 1 + random.below(3)
  const make: Ask = { method: 'POST', path: '/sandbox', body: { cpu: size(), memory: size(), disk: 2 + size() } }
  const row = rows[random.below(rows.length)]
  if (row === undefined) return make
  const verb = (name: string, body?: object): Ask => ({
    method: 'POST',
    path: `/sandbox/${row.id}/${name}`,
    ...(body ? { body } : {}),
  })
  return random.pick<Ask>([
    [4, make],
    [4, verb('start')],
    [3, verb('stop')],
    [2, verb('pause')],
    [2, verb('archive')],
    [3, verb('resize', { cpu: size(), memory: size() })],
    [1, verb('resize', { disk: row.disk_gib + 1 })],
    [2, verb('fork')],
    [1, verb('snapshot', { name: `s-${random.below(1e9)}` })],
    [1, verb('recover')],
    [1, { method: 'DELETE', path: `/sandbox/${row.id}` }],
  ])
}

suite('quotas under concurrent calls', () => {
  test('of a hundred concurrent creates, exactly as many succeed as fit into the organization’s quota', {
    timeout: 120_000,
  }, async () => {
    await using two = await startTwo()
    await using runner = await connectRunner(two.app)
    const make = { method: 'POST', path: '/sandbox', body: { cpu: 1 } } as const
    const replies = await Promise.all(Array.from({ length: callers }, () => two.ask(make)))
    const made = replies.filter(({ status }) => status === 200)
    assert.equal(made.length, quota.cpu)
    for (const { status, text } of replies) assert.ok(status === 200 || status === 403, text)
    assert.equal((await checkSettled(two.app, await settle(two.app, runner))).cpu, quota.cpu)
  })

  test('random calls of many callers at the same time never exceed the organization’s quota', {
    timeout: 240_000,
  }, async (t) => {
    await using two = await startTwo()
    const { app, ask } = two
    await using runner = await connectRunner(app)
    const seed = Number(process.env['ALCOVE_TEST_SEED'] ?? Date.now() % 1e9)
    t.diagnostic(`seed ${seed}`)
    const random = randomFrom(seed)
    runner.behaveWithImages(() => 'do')
    runner.behave(({ sandboxId, target }) => {
      const isResize = target === 'started' && runner.has.get(sandboxId) === 'started'
      if (isResize && random.next() < 0.3) return { type: 'refuse', reason: 'In use.', state: 'started' }
      // Makes some starts fail. A sandbox whose start failed uses its quota until it is recovered or deleted.
      return target === 'started' && random.next() < 0.1 ? { type: 'fail', reason: 'No luck.' } : { type: 'do' }
    })
    const seen = new Map<number, number>()
    let isFull = false
    for (let round = 0; round < 6; round++) {
      const rows = await rowsOf(app)
      const asked = Array.from({ length: callers }, () => thinkOf(random, rows))
      for (const { status, text } of await Promise.all(asked.map(ask))) {
        assert.ok([200, 400, 403, 404, 409].includes(status), text)
        seen.set(status, (seen.get(status) ?? 0) + 1)
      }
      const { cpu, disk } = await checkSettled(app, await settle(app, runner))
      isFull ||= cpu >= quota.cpu - 2 || disk >= quota.disk - 4
    }
    assert.ok(isFull && (seen.get(200) ?? 0) > 50 && (seen.get(403) ?? 0) > 50, JSON.stringify([...seen]))
  })
})
