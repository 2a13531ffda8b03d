// Tests new sizes (processors, memory, disk) for running, paused and stopped sandboxes, and how changes reach the journal.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import type { Machine } from '#src/runner/machine/machine.ts'
import type { Running } from '#src/runner/machine/running.ts'
import { assigned } from '#src/runner/testing/simulated-host.ts'
import { TestHost } from '#src/runner/testing/test-host.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { changeSandbox } from './change.ts'

suite('resizing a sandbox', { skip: needsRoot }, () => {
  let box: TestHost
  before(async () => {
    box = await TestHost.start()
  })
  after(async () => {
    await box[Symbol.asyncDispose]()
  })

  const memoryLimit = async (sandboxId: string) => {
    const { output } = await box.run(
      sandboxId,
      'cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null',
    )
    return Number(output) / 1024 ** 3
  }

  test('a new memory size changes a sandbox’s limit of processes; the sandbox’s programs read the new limit', async () => {
    const assignment = await box.started({ memoryGiB: 0.25 })
    const { sandboxId } = assignment
    const seen = async () => {
      const file = 'cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max 2>/dev/null; ulimit -u'
      return (await box.run(sandboxId, file)).output.split('\n').map(Number)
    }
    assert.equal((await seen())[0], 1024)
    assert.equal((await seen())[1], 1025)
    await box.host.start({ ...assignment, generation: 2, memoryGiB: 0.75 })
    assert.equal((await seen())[0], 3072)
    assert.equal((await seen())[1], 3073)
    await box.host.start({ ...assignment, generation: 3, memoryGiB: 0.25 })
    assert.equal((await seen())[0], 1024)
    assert.equal((await seen())[1], 1025)
    await box.host.destroy(sandboxId)
  })

  test('a resize below the memory in use changes nothing; the error names the memory in use and the new size', async () => {
    const assignment = await box.started({ memoryGiB: 0.5, cpu: 1 })
    const { sandboxId } = assignment
    await box.run(sandboxId, 'dd if=/dev/zero of=/dev/shm/held bs=1M count=200 2>/dev/null')
    await box.host.start({ ...assignment, generation: 2, memoryGiB: 0.125, cpu: 2, diskGiB: 2 })
    const held = box.host.get(sandboxId)
    assert.match(held?.refused ?? '', /^The sandbox uses 0\.2\d* GiB of memory, so it cannot be given 0\.125 GiB\.$/)
    assert.deepEqual(held?.assignment, { ...assignment, generation: 2 })
    assert.equal(held?.status, 'started')
    assert.equal(await memoryLimit(sandboxId), 0.5)

    await box.close()
    await box.open()
    assert.equal(box.host.get(sandboxId)?.refused, held?.refused, 'the next runner knows it too')

    await box.run(sandboxId, 'rm /dev/shm/held')
    await box.host.start({ ...assignment, generation: 3, memoryGiB: 0.125 })
    assert.equal(box.host.get(sandboxId)?.refused, undefined)
    assert.equal(await memoryLimit(sandboxId), 0.125)
  })

  test('/dev/shm always has half of a sandbox’s memory; a resize is refused if the files there do not fit', async () => {
    const assignment = await box.started({ memoryGiB: 0.5 })
    const { sandboxId } = assignment
    const size = async () => {
      const { output } = await box.run(sandboxId, 'stat -f -c "%b %S" /dev/shm')
      const [blocks = 0, blockBytes = 0] = output.split(' ').map(Number)
      return (blocks * blockBytes) / 1024 ** 2
    }
    await box.run(sandboxId, 'dd if=/dev/zero of=/dev/shm/held bs=1M count=80 2>/dev/null')
    assert.equal(await size(), 256)
    await box.host.start({ ...assignment, generation: 2, memoryGiB: 0.125 })
    assert.match(
      box.host.get(sandboxId)?.refused ?? '',
      /^More than 0\.07 GiB of \/dev\/shm, .* cannot be given 0\.125 GiB\.$/,
    )
    assert.deepEqual([await size(), await memoryLimit(sandboxId)], [256, 0.5])
    await box.run(sandboxId, 'rm /dev/shm/held')
    await box.host.start({ ...assignment, generation: 3, memoryGiB: 0.125 })
    assert.deepEqual([await size(), await memoryLimit(sandboxId)], [64, 0.125])
    await box.host.pause({ ...assignment, generation: 4, target: 'paused', memoryGiB: 1 })
    await box.host.start({ ...assignment, generation: 5, memoryGiB: 1 })
    assert.equal(await size(), 512)
    const options = (await box.run(sandboxId, 'cat /proc/mounts')).output
      .split('\n')
      .find((line) => line.includes(' /dev/shm '))
    for (const option of ['nosuid', 'nodev', 'noexec']) assert.match(options ?? '', new RegExp(option))
  })

  test('after a resize, the added disk space can be used immediately', async () => {
    const assignment = await box.started({ diskGiB: 0.03125 })
    const { sandboxId } = assignment
    assert.notEqual((await box.run(sandboxId, 'dd if=/dev/zero of=/root/file bs=1M count=64 conv=fsync')).exitCode, 0)
    await box.host.start({ ...assignment, generation: 2, diskGiB: 1 })
    assert.equal((await box.run(sandboxId, 'dd if=/dev/zero of=/root/file bs=1M count=64 conv=fsync')).exitCode, 0)
  })

  test('a stopped sandbox that is resized has its new disk and memory sizes after its next start', async () => {
    const assignment = await box.started({ diskGiB: 0.03125 })
    const { sandboxId } = assignment
    await box.host.stop(assignment)
    await box.host.stop({ ...assignment, generation: 2, target: 'stopped', diskGiB: 1, memoryGiB: 0.5 })
    await box.host.start({ ...assignment, generation: 3, diskGiB: 1, memoryGiB: 0.5 })
    assert.equal(await memoryLimit(sandboxId), 0.5)
    assert.equal((await box.run(sandboxId, 'dd if=/dev/zero of=/root/file bs=1M count=64 conv=fsync')).exitCode, 0)
  })

  test('a sandbox’s changed environment variables are in the journal before the change is reported', async () => {
    const assignment = await box.started({})
    const { sandboxId } = assignment
    const wanted = { ...assignment, generation: 2, env: { A: '1' }, unsetEnv: ['LANG'] }
    await box.host.start(wanted)
    const journal = join(box.directory, 'runner/sandboxes', sandboxId, 'spec.json')
    assert.deepEqual(JSON.parse(readFileSync(journal, 'utf8')).assignment.env, { A: '1' })
    await box.close()
    await box.open()
    const { env, unsetEnv } = box.host.get(sandboxId)?.assignment ?? assert.fail()
    assert.deepEqual([env, unsetEnv], [{ A: '1' }, ['LANG']])
    await box.host.destroy(sandboxId)
  })
})

suite('the journal of a sandbox that is changed while it runs', () => {
  /** Changes a sandbox. Returns how the journal was written: before the change was reported (`now`), or perhaps later (`late`). */
  const writesFor = async (changes: Partial<Assignment>) => {
    const writes: string[] = []
    const machine = {
      places: { cgroup: 'nowhere' },
      cgroups: { version: 2, root: '/nowhere' },
      journal: { rewriteSpec: async () => writes.push('now'), rewriteSpecLate: () => writes.push('late') },
    } as unknown as Machine
    const assignment = assigned('box', 1)
    const wanted = { ...assignment, generation: 2, ...changes }
    await changeSandbox(machine, { assignment, status: 'started' }, wanted, {} as Running)
    return writes
  }

  test('each change of a sandbox is written to the journal, except a pause or resume; variables are not late', async () => {
    assert.deepEqual(await writesFor({ target: 'paused', signal: 'SIGKILL' }), [])
    assert.deepEqual(await writesFor({ name: 'another' }), ['late'])
    assert.deepEqual(await writesFor({ env: { A: '1' } }), ['now'])
  })
})
