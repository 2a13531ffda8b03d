// Tests measurements of real sandboxes. Needs root; without root the suite is skipped.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { GiB } from '#src/runner/cgroup/sandbox-limits.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { TestHost } from '../testing/test-host.ts'

const MiB = 1024 * 1024

suite('measurements of what a sandbox uses', { skip: needsRoot }, () => {
  let box: TestHost
  let assignment: Assignment
  before(async () => {
    box = await TestHost.start()
    assignment = await box.started()
  })
  after(async () => {
    await box[Symbol.asyncDispose]()
  })
  const measure = async () => (await box.host.measure(assignment.sandboxId)) ?? assert.fail('it is not measured')
  /** Makes the kernel update its counters of disk use immediately. By itself, the kernel updates the counters twice a minute. */
  const settle = () => execFileSync('btrfs', ['filesystem', 'sync', join(box.directory, 'runner/pool')])

  test('a sandbox’s measurement contains the limits and the use of that sandbox, not of the host', async () => {
    const before = await measure()
    assert.deepEqual([before.cpuCount, before.memTotal, before.diskTotal], [1, 0.25 * GiB, GiB])
    assert.ok(before.memUsed < 32 * MiB && before.cpuUsedPct < 50, JSON.stringify(before))
    const write =
      'dd if=/dev/zero of=/dev/shm/held bs=1M count=64 && dd if=/dev/urandom of=/file bs=1M count=32 conv=fsync'
    assert.equal((await box.run(assignment.sandboxId, `${write} && cat /file > /dev/null`)).exitCode, 0)
    settle()
    const after = await measure()
    assert.ok(after.memUsed - before.memUsed >= 60 * MiB, 'memory that is held counts as used')
    assert.ok(after.memCache >= 16 * MiB, 'pages of files count as cache')
    assert.ok(after.memUsed + after.memCache <= after.memTotal)
    assert.ok((after.diskUsed ?? 0) - (before.diskUsed ?? 0) >= 32 * MiB, 'what is written counts on the disk')
    assert.ok((after.diskUsed ?? 0) < 48 * MiB)
  })

  test('a measurement shows a sandbox’s CPU use, which is 0 while the sandbox is paused', async () => {
    await box.run(assignment.sandboxId, 'while :; do :; done > /dev/null 2>&1 &')
    // Measures in several rounds until the CPU use is high enough, because other programs may be using this machine's processors.
    let busy = 0
    for (let round = 0; round < 20 && busy < 20; round++) busy = (await measure()).cpuUsedPct
    assert.ok(busy >= 20 && busy <= 100, String(busy))
    await box.host.pause({ ...assignment, generation: 2, target: 'paused' })
    const paused = await measure()
    assert.equal(paused.cpuUsedPct, 0)
    assert.ok(paused.memUsed >= 60 * MiB)
  })

  test('`measureAll` returns the values that `measure` returns, and leaves out stopped sandboxes', async () => {
    const other = await box.started({ cpu: 2 })
    await pause(50)
    const all = await box.host.measureAll()
    const alone = await measure()
    assert.deepEqual([...all.keys()].sort(), [assignment.sandboxId, other.sandboxId].sort())
    const reading = all.get(assignment.sandboxId) ?? assert.fail()
    assert.ok(Math.abs(reading.memUsed - alone.memUsed) < MiB)
    const { memUsed, memCache, cpuUsedPct } = alone
    assert.deepEqual({ ...reading, memUsed, memCache, cpuUsedPct }, alone)
    assert.equal(all.get(other.sandboxId)?.cpuCount, 2)
    await box.host.stop({ ...other, generation: 2, target: 'stopped', signal: 'SIGKILL' })
    assert.deepEqual([...(await box.host.measureAll()).keys()], [assignment.sandboxId])
    assert.equal(await box.host.measure(other.sandboxId), undefined)
    assert.equal(await box.host.measure('no-such'), undefined)
  })
})
