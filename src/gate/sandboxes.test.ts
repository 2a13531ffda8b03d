import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { silentLog } from '#src/kit/log.ts'
import type { ContextStore } from '#src/runner/contexts/store.ts'
import { serveGates } from '#src/runner/gate-link/socket.ts'
import { assigned, SimulatedHost } from '#src/runner/testing/simulated-host.ts'
import { type AdmittedSandbox, Sandboxes } from './sandboxes.ts'

/** Starts a real connection between a gate and a runner, with a simulated host in memory. */
const startSides = async ({ hasRunner = true } = {}) => {
  const directory = mkdtempSync(join(tmpdir(), 'alcove-sandboxes-'))
  const path = join(directory, 'runner.sock')
  const host = new SimulatedHost()
  const parts = { host, contexts: {} as ContextStore, configOf: () => undefined, log: silentLog() }
  const startRunner = () => serveGates(parts, path, process.getgid?.() ?? 0)
  let runner = hasRunner ? await startRunner() : undefined
  const sandboxes = new Sandboxes(silentLog())
  const runnerAddress = `unix:${path}`
  const link = sandboxes.linkTo(runnerAddress)
  return {
    host,
    link,
    wanted: (more: Partial<AdmittedSandbox> = {}): AdmittedSandbox => ({
      sandboxId: 'box',
      runnerAddress,
      isStarted: true,
      ...more,
    }),
    find: async (wanted: AdmittedSandbox) => (await sandboxes.find(wanted)).sandbox,
    stopRunner: async () => {
      await runner?.[Symbol.asyncDispose]()
      runner = undefined
    },
    startRunner: async () => {
      runner = await startRunner()
    },
    async [Symbol.asyncDispose]() {
      sandboxes[Symbol.dispose]()
      await runner?.[Symbol.asyncDispose]()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

const until = async (isSo: () => boolean) => {
  while (!isSo()) await pause(5)
}

suite('the sandboxes of this host that the gate knows', () => {
  test('the gate knows the sandboxes that its runner reports, in their present state', async () => {
    await using sides = await startSides()
    sides.host.hold(assigned('box', 1), 'started')
    assert.equal((await sides.find(sides.wanted()))?.socketPath, '/nowhere/box')
    sides.host.hold(assigned('box', 2), 'paused')
    await until(() => sides.link.get('box')?.status === 'paused')
    sides.host.forget('box')
    await until(() => sides.link.get('box') === undefined)
  })

  test('a call waits until the runner reports the generation that control named, or a later generation', async () => {
    await using sides = await startSides()
    sides.host.hold(assigned('box', 5), 'started')
    const waiting = sides.find(sides.wanted({ leastGeneration: 6 }))
    assert.equal((await sides.find(sides.wanted({ leastGeneration: 3 })))?.assignment.generation, 5)
    sides.host.hold(assigned('box', 6), 'started')
    assert.equal((await waiting)?.assignment.generation, 6)
  })

  test('a call to a sandbox that has just started waits for its runner’s report', async () => {
    await using sides = await startSides()
    sides.host.hold(assigned('box', 1), 'stopped')
    const waiting = sides.find(sides.wanted())
    await until(() => sides.link.get('box') !== undefined)
    sides.host.hold(assigned('box', 2), 'started')
    assert.equal((await waiting)?.status, 'started')
  })

  test('a call fails within a short time if the runner has reported the sandbox as stopped, or not at all', async () => {
    await using sides = await startSides()
    assert.equal(await sides.find(sides.wanted()), undefined)
    sides.host.hold(assigned('box', 1), 'stopped')
    assert.equal((await sides.find(sides.wanted()))?.status, 'stopped')
  })

  test('a call waits up to ten seconds until the runner reports the needed generation, and then succeeds', async (t) => {
    await using sides = await startSides()
    sides.host.hold(assigned('box', 1), 'started')
    await until(() => sides.link.get('box') !== undefined)
    let now = 0
    let looks = 0
    t.mock.method(performance, 'now', () => now)
    t.mock.method(sides.link, 'untilChanged', async (_: string, milliseconds: number) => {
      looks += 1
      assert.equal(milliseconds, 10_000 - now)
      if (looks < 100) now += 99
      else t.mock.method(sides.link, 'get', () => ({ status: 'started', assignment: assigned('box', 2) }))
    })
    const found = await sides.find(sides.wanted({ leastGeneration: 2 }))
    assert.deepEqual([found?.assignment.generation, looks, now], [2, 100, 9801])
  })

  test('every report about a sandbox wakes the calls that wait for it', { timeout: 60_000 }, async () => {
    await using sides = await startSides({ hasRunner: false })
    const hour = 3_600_000
    const waiting = sides.link.untilChanged('box', hour)
    await sides.startRunner()
    await waiting
    for (const happen of [
      () => sides.host.hold(assigned('box', 1), 'started'),
      () => sides.host.hold(assigned('box', 2), 'paused'),
      () => sides.host.forget('box'),
    ]) {
      const woken = sides.link.untilChanged('box', hour)
      happen()
      await woken
    }
  })

  test('a call gets 503 if the runner does not report the needed generation within ten seconds', async (t) => {
    await using sides = await startSides()
    sides.host.hold(assigned('box', 1), 'started')
    await until(() => sides.link.get('box') !== undefined)
    let now = 0
    t.mock.method(performance, 'now', () => (now += 4000))
    t.mock.method(sides.link, 'untilChanged', async () => undefined)
    await assert.rejects(sides.find(sides.wanted({ leastGeneration: 2 })), { status: 503 })
  })

  test('while a runner is disconnected from the gate, the gate uses the last reports of that runner', async () => {
    await using sides = await startSides()
    sides.host.hold(assigned('box', 1), 'started')
    sides.host.hold(assigned('other', 1), 'started')
    await sides.find(sides.wanted())
    await sides.stopRunner()
    await until(() => !sides.link.isCurrent)
    assert.equal((await sides.find(sides.wanted()))?.status, 'started')
    sides.host.forget('other')
    await sides.startRunner()
    await until(() => sides.link.isCurrent)
    assert.equal(sides.link.get('other'), undefined)
    assert.equal((await sides.find(sides.wanted()))?.status, 'started')
  })

  test('a call gets 503 if no runner could be reached yet, and a runner that starts later is found', async () => {
    await using sides = await startSides({ hasRunner: false })
    await assert.rejects(sides.find(sides.wanted()), { status: 503 })
    sides.host.hold(assigned('box', 1), 'started')
    const waiting = sides.find(sides.wanted())
    await sides.startRunner()
    assert.equal((await waiting)?.status, 'started')
  })

  test('a call gets 502 for a sandbox whose runner is on another host', async () => {
    await using sides = await startSides()
    await assert.rejects(sides.find(sides.wanted({ runnerAddress: 'http://10.0.0.1:1' })), { status: 502 })
  })
})
