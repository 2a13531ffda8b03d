// Tests the entrypoint: in real sandboxes (needs root, otherwise skipped), and with an agent that does not answer.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { createLog } from '#src/kit/log.ts'
import { placesOf } from '#src/runner/machine/places.ts'
import { KillableRunner } from '#src/runner/testing/killable-runner.ts'
import { openTestHostIn, TestHost } from '#src/runner/testing/test-host.ts'
import { type Agent, agentAt } from '#src/toolbox/agent/agent.ts'
import { until } from '#src/toolbox/agent/testing/native-agent.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { startEntrypoint } from './entrypoint.ts'

/** An entrypoint that appends a line to a file on the sandbox's disk at each run, and then keeps running. */
const noting = ['/bin/sh', '-c', 'echo "$USER $PWD $OWN $IMAGE" >> /root/runs; exec sleep 1000']

suite('the entrypoint of a sandbox', { skip: needsRoot }, () => {
  let box: TestHost
  before(async () => {
    box = await TestHost.start()
  })
  after(async () => {
    await box[Symbol.asyncDispose]()
  })

  const jobsOf = (sandboxId: string) => agentAt(box.host.get(sandboxId)!.socketPath).jobs.list()

  /** Waits until /root/runs has `count` lines, one for each run of the entrypoint. Returns the lines. */
  const runsOf = async (sandboxId: string, count: number): Promise<string[]> => {
    let runs: string[] = []
    await until(async () => {
      const { output } = await box.run(sandboxId, 'cat /root/runs 2>/dev/null')
      runs = output.split('\n').filter(Boolean)
      return runs.length >= count
    }, `${count} runs`)
    return runs.map((run) => run.trim())
  }

  test('the entrypoint runs at each start with the sandbox’s user and variables, but not at a resume', async () => {
    const assignment = await box.started({ user: 'root', entrypoint: noting, env: { OWN: 'mine' } })
    const { sandboxId } = assignment
    const run = 'root /root mine'
    assert.deepEqual(await runsOf(sandboxId, 1), [run])
    assert.deepEqual(
      (await jobsOf(sandboxId)).map(({ id, state }) => [id, state]),
      [['entrypoint', 'running']],
    )
    await box.host.pause({ ...assignment, generation: 2, target: 'paused' })
    await box.host.start({ ...assignment, generation: 3 })
    assert.deepEqual(await runsOf(sandboxId, 1), [run])
    await box.host.stop({ ...assignment, generation: 4, target: 'stopped' })
    await box.host.start({ ...assignment, generation: 5, env: { OWN: 'changed' } })
    assert.deepEqual(await runsOf(sandboxId, 2), [run, 'root /root changed'])
    await box.host.destroy(sandboxId)
  })

  test('a sandbox starts and keeps running even if its entrypoint ends or cannot start', async () => {
    for (const [entrypoint, exitCode] of [
      [['/bin/true'], 0],
      [['/bin/sh', '-c', 'kill -9 $$'], 137],
      [['/nowhere'], 127],
    ] as const) {
      const { sandboxId } = await box.started({ user: 'root', entrypoint })
      assert.equal((await box.run(sandboxId, 'echo here')).output, 'here')
      await until(async () => (await jobsOf(sandboxId))[0]?.state === 'ended', 'the end of the entrypoint')
      assert.equal((await jobsOf(sandboxId))[0]?.exit?.exitCode, exitCode)
      assert.equal(box.host.get(sandboxId)?.status, 'started')
      await box.host.destroy(sandboxId)
    }
  })

  test('the entrypoint of a warm sandbox runs once, at the claim, with the environment of the new owner', async () => {
    const warm = await box.started({ user: 'root', isWarm: true, entrypoint: noting })
    const { isWarm: _, ...claimed } = { ...warm, generation: 2, env: { OWN: 'claimed' } }
    const { sandboxId } = warm
    assert.deepEqual(await jobsOf(sandboxId), [])
    await box.host.start(claimed)
    assert.deepEqual(await runsOf(sandboxId, 1), ['root /root claimed'])
    await box.host.start({ ...claimed, generation: 3 })
    assert.equal((await jobsOf(sandboxId)).length, 1)
    assert.deepEqual(await runsOf(sandboxId, 1), ['root /root claimed'])
    await box.host.destroy(sandboxId)
  })

  test('a sandbox’s entrypoint runs once and keeps running, even if the runner is killed during the start', async () => {
    await box.close()
    const killable = await KillableRunner.open(box)
    const assignment = box.assignment({ user: 'root', entrypoint: noting })
    const { sandboxId } = assignment
    await killable.does({ verb: 'start', assignment })
    await killable.kill()
    // Write `run.json` as a runner leaves it if it is killed during the start. The next runner cannot know how far the start had
    // come.
    const path = join(box.directory, 'runner/sandboxes', sandboxId, 'run.json')
    const { bootId, slot } = JSON.parse(readFileSync(path, 'utf8'))
    writeFileSync(path, JSON.stringify({ bootId, slot }))
    await box.open()
    assert.deepEqual(await runsOf(sandboxId, 1), ['root /root'])
    const [job] = await jobsOf(sandboxId)
    assert.equal(job?.state, 'running')
    await agentAt(box.host.get(sandboxId)!.socketPath).jobs.remove('entrypoint')
    await box.close()
    writeFileSync(path, JSON.stringify({ bootId, slot }))
    await box.open()
    assert.deepEqual(await runsOf(sandboxId, 2), ['root /root', 'root /root'])
    await box.host.destroy(sandboxId)
  })

  test('the entrypoint gets its image’s working directory and variables; sandbox variables override them', async () => {
    await box.close()
    const config = { entrypoint: noting, env: { IMAGE: 'says', OWN: 'image' }, user: 'root', workdir: '/tmp' }
    const rootfsOf = () => join(box.directory, 'small')
    box.use(await openTestHostIn(box.instance, box.directory, { brought: { rootfsOf, configOf: () => config } }))
    const { sandboxId } = await box.started({ user: 'root', entrypoint: noting, env: { OWN: 'mine' } })
    assert.deepEqual(await runsOf(sandboxId, 1), ['root /tmp mine says'])
    await box.host.destroy(sandboxId)
  })
})

suite('the entrypoint, if the agent does not answer or fails', () => {
  /** Starts an entrypoint with an agent whose answer is `answer`. `asked` resolves when the agent has received the request. */
  const startWith = (answer: Promise<never>) => {
    const lines: string[] = []
    const asked = Promise.withResolvers<void>()
    const spawn = () => {
      asked.resolve()
      return answer
    }
    const agentAt = () => ({ jobs: { spawn } as Partial<Agent['jobs']> }) as Agent
    const log = createLog('runner', 'info', { write: (line) => lines.push(line) })
    const parts = {
      agentAt,
      places: placesOf('ABCDEF', '/nowhere'),
      log,
      pool: { baseOf: async () => 'small' },
      images: {},
    }
    const assignment = {
      sandboxId: 'box',
      image: 'small',
      user: 'root',
      env: {},
      entrypoint: noting,
    } as Partial<Assignment>
    const started = startEntrypoint(parts, assignment as Assignment)
    return { started, asked: asked.promise, said: () => lines.map((line) => JSON.parse(line).msg) }
  }

  test('if the agent does not start the entrypoint within 10 s, the start of the sandbox continues anyway', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const answer = Promise.withResolvers<never>()
    const { started, asked, said } = startWith(answer.promise)
    let isOver = false
    const over = started.then(() => {
      isOver = true
    })
    await asked
    t.mock.timers.tick(9_999)
    await new Promise(setImmediate)
    assert.deepEqual([isOver, said()], [false, []])
    t.mock.timers.tick(1)
    await over
    assert.deepEqual(said(), ['its entrypoint does not start in time'])
    answer.reject(new Error('gone'))
    await new Promise(setImmediate)
    assert.deepEqual(said().slice(1), ['its entrypoint could not be run'])
  })

  test('if the agent cannot run the entrypoint, the sandbox starts anyway, and the runner logs one line', async () => {
    const { started, said } = startWith(Promise.reject(new Error('gone')))
    await started
    assert.deepEqual(said(), ['its entrypoint could not be run'])
  })
})
