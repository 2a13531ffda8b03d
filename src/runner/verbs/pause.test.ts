// Tests pause and resume of real sandboxes. Needs root; without root the suite is skipped.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { KillableRunner } from '#src/runner/testing/killable-runner.ts'
import { TestHost } from '#src/runner/testing/test-host.ts'
import { agentAt } from '#src/toolbox/agent/agent.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'

const counting = 'i=0; while :; do i=$((i+1)); echo $i > /dev/shm/n; done >/dev/null 2>&1 &'

suite('pausing a sandbox', { skip: needsRoot }, () => {
  let box: TestHost
  before(async () => {
    box = await TestHost.start()
  })
  after(async () => {
    await box[Symbol.asyncDispose]()
  })

  const paused = (assignment: Assignment): Assignment => ({
    ...assignment,
    generation: assignment.generation + 1,
    target: 'paused',
  })
  const resumed = (assignment: Assignment): Assignment => ({ ...paused(assignment), target: 'started' })
  const statusOf = ({ sandboxId }: Assignment) => box.host.get(sandboxId)?.status
  const ticksOf = (pids: readonly number[]) =>
    pids.map((pid) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ').slice(13, 15).join()).join()
  // Prints the number in /dev/shm/n, which `counting` increments. The loop repeats because each change empties the file for a
  // moment.
  const readCount = 'n=; while [ -z "$n" ]; do read n < /dev/shm/n; done 2>/dev/null; echo $n'
  const counter = async ({ sandboxId }: Assignment) => Number((await box.run(sandboxId, readCount)).output)
  const counts = async (assignment: Assignment) => {
    const from = await counter(assignment)
    while ((await counter(assignment)) <= from);
    return from
  }

  test('no process of a paused sandbox runs, and all its processes continue after the resume', async () => {
    const assignment = await box.started()
    await box.run(assignment.sandboxId, counting)
    const before = await counts(assignment)
    const pids = await box.cgroupOf(assignment.sandboxId).pids()
    await box.host.pause(paused(assignment))
    assert.equal(statusOf(assignment), 'paused')
    const ticks = ticksOf(pids)
    for (let round = 0; round < 200; round++) await new Promise(setImmediate)
    assert.equal(ticksOf(pids), ticks)
    await box.host.start(resumed(paused(assignment)))
    assert.equal(statusOf(assignment), 'started')
    assert.ok((await counts(assignment)) >= before)
    assert.deepEqual(new Set(await box.cgroupOf(assignment.sandboxId).pids()), new Set(pids))
  })

  test('if a sandbox is paused 50 times, the streamed output of its command is complete and has no repeats', async () => {
    const assignment = await box.started()
    const { sandboxId } = assignment
    const command = await agentAt(box.host.get(sandboxId)!.socketPath).exec({
      argv: ['/bin/sh', '-c', 'i=0; while [ ! -e /dev/shm/end ]; do i=$((i+1)); echo $i; sleep 0.001; done'],
      env: { PATH: '/bin' },
      cwd: '/',
      user: 'root',
      mergeOutput: true,
    })
    const read = (async () => {
      let output = ''
      for await (const { data } of command) output += data
      return output.trim().split('\n').map(Number)
    })()
    let now = assignment
    for (let cycle = 0; cycle < 50; cycle++) {
      now = paused(now)
      await box.host.pause(now)
      now = resumed(now)
      await box.host.start(now)
    }
    await box.run(sandboxId, 'echo > /dev/shm/end')
    const numbers = await read
    assert.equal((await command.exit).exitCode, 0)
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index + 1),
    )
    assert.equal(box.host.get(sandboxId)?.assignment.generation, 101)
  })

  test('a second pause of a paused sandbox succeeds, and gives the sandbox the newer generation', async () => {
    const assignment = await box.started()
    await Promise.all([box.host.pause(paused(assignment)), box.host.pause(paused(assignment))])
    await box.host.pause(paused(paused(assignment)))
    const held = box.host.get(assignment.sandboxId)
    assert.deepEqual([held?.status, held?.assignment.generation], ['paused', 3])
  })

  for (const signal of ['SIGTERM', 'SIGKILL'] as const)
    test(`a stop with ${signal} ends a paused sandbox and keeps the sandbox’s disk`, async () => {
      const assignment = await box.started({ signal })
      await box.run(assignment.sandboxId, 'echo kept > /root/file')
      await box.host.pause(paused(assignment))
      await box.host.stop({ ...assignment, generation: 3, target: 'stopped' })
      assert.equal(statusOf(assignment), 'stopped')
      assert.deepEqual(await box.cgroupOf(assignment.sandboxId).pids(), [])
      await box.host.start({ ...assignment, generation: 4 })
      assert.equal((await box.run(assignment.sandboxId, 'cat /root/file')).output, 'kept')
    })

  test('a destroy of a paused sandbox leaves nothing of the sandbox on the host', async () => {
    const assignment = await box.started()
    const { sandboxId } = assignment
    await box.host.pause(paused(assignment))
    await box.host.destroy(sandboxId)
    assert.deepEqual(await box.tracesOf(sandboxId), [])
    assert.deepEqual(await box.cgroupOf(sandboxId).pids(), [])
  })

  test('a pause of a stopped sandbox is ignored, and does not start the sandbox', async () => {
    const assignment = await box.started()
    await box.host.stop(assignment)
    await box.host.pause(paused(assignment))
    const held = box.host.get(assignment.sandboxId)
    assert.deepEqual([held?.status, held?.cause], ['stopped', { detail: 'The sandbox was not running.' }])
    await assert.rejects(box.host.pause(box.assignment()), /not on this runner/)
  })

  test('a resize of a paused sandbox takes effect and leaves the sandbox paused', async () => {
    const assignment = await box.started()
    const { sandboxId } = assignment
    await box.host.pause(paused(assignment))
    await box.host.pause({ ...paused(paused(assignment)), memoryGiB: 0.5 })
    assert.equal(statusOf(assignment), 'paused')
    await box.host.start(resumed({ ...assignment, generation: 3, memoryGiB: 0.5 }))
    const { output } = await box.run(
      sandboxId,
      'cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null',
    )
    assert.equal(output, String(512 * 1024 ** 2))
  })

  test('if the runner is killed, a paused sandbox stays paused, and the next runner can resume it', async () => {
    await box.close()
    const killable = await KillableRunner.open(box)
    const assignment = box.assignment()
    await killable.does({ verb: 'start', assignment })
    await killable.does({ verb: 'pause', assignment: paused(assignment) })
    await killable.kill()
    await box.open()
    assert.equal(statusOf(assignment), 'paused')
    await box.host.start(resumed(paused(assignment)))
    assert.equal((await box.run(assignment.sandboxId, 'echo here')).output, 'here')
    await box.close()
    await box.open()
    assert.equal(statusOf(assignment), 'started')
  })

  test('a sandbox that a killed runner had frozen only for a moment continues when the next runner starts', async () => {
    const assignment = await box.started()
    await box.close()
    await box.cgroupOf(assignment.sandboxId).freeze()
    await box.open()
    assert.equal(statusOf(assignment), 'started')
    assert.equal((await box.run(assignment.sandboxId, 'echo here')).output, 'here')
  })

  test('a restart of the machine ends a paused sandbox, and the cause of its end names the restart', async () => {
    const assignment = await box.started()
    await box.host.pause(paused(assignment))
    await box.close()
    const path = join(box.directory, 'runner/sandboxes', assignment.sandboxId, 'run.json')
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), bootId: 'an earlier one' }))
    await box.open()
    const held = box.host.get(assignment.sandboxId)
    assert.deepEqual([held?.status, held?.cause], ['stopped', { detail: 'The machine was restarted.' }])
  })
})
