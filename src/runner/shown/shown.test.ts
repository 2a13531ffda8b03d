// Tests what programs in real sandboxes see of their machine. Needs root; without root the suite is skipped.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { hostCpus, parseCpuList } from '#src/runner/cgroup/cpus.ts'
import type { Assignment, Cause } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { runSteps, step } from '../launch.ts'
import { builtLauncher, TestHost } from '../testing/test-host.ts'

const later = (assignment: Assignment, changes: Partial<Assignment> = {}): Assignment => ({
  ...assignment,
  ...changes,
  generation: assignment.generation + 1,
})

suite('the limits that a sandbox sees', { skip: needsRoot }, () => {
  let box: TestHost
  before(async () => {
    box = await TestHost.start()
  })
  after(async () => {
    await box[Symbol.asyncDispose]()
  })

  const read = async (sandboxId: string, path: string) => (await box.run(sandboxId, `cat ${path}`)).output
  const memoryOf = async (sandboxId: string, name: string) =>
    Number(new RegExp(`^${name}: +(\\d+) kB`, 'm').exec(await read(sandboxId, '/proc/meminfo'))?.[1]) / 1024
  const cpusOf = async (sandboxId: string) => {
    const [, list = ''] = /^Cpus_allowed_list:\s*(.*)$/m.exec(await read(sandboxId, '/proc/self/status')) ?? []
    const online = await read(sandboxId, '/sys/devices/system/cpu/online')
    const listed = [...(await read(sandboxId, '/proc/cpuinfo')).matchAll(/^processor\s*: (\d+)$/gm)].map(Number)
    assert.equal(online, list)
    if (listed.length > 0) assert.equal(listed.length, parseCpuList(list).length)
    return parseCpuList(list)
  }
  const until = async (done: () => Promise<boolean>) => {
    const end = Date.now() + 30_000
    while (!(await done())) assert.ok(Date.now() < end, 'not within 30 s')
  }

  /** Waits for `promise`, at most 30 seconds. The timer keeps the test process alive, which the runner's own timers do not. */
  const soon = async <T>(promise: Promise<T>): Promise<T> => {
    const late = setTimeout(() => assert.fail('not within 30 s'), 30_000)
    return promise.finally(() => clearTimeout(late))
  }

  test('programs in a sandbox see its CPU and memory, not the host’s, also right after a resize', async () => {
    const assignment = await box.started({ cpu: 1, memoryGiB: 0.25 })
    const { sandboxId } = assignment
    assert.equal(await memoryOf(sandboxId, 'MemTotal'), 256)
    assert.equal((await cpusOf(sandboxId)).length, 1)
    const larger = later(assignment, { cpu: 1.5, memoryGiB: 0.5 })
    await box.host.start(larger)
    assert.equal(await memoryOf(sandboxId, 'MemTotal'), 512)
    const both = Math.min(2, hostCpus().length)
    assert.equal((await cpusOf(sandboxId)).length, both)
    await box.close()
    await box.open()
    assert.equal(await memoryOf(sandboxId, 'MemTotal'), 512)
    assert.equal((await cpusOf(sandboxId)).length, both)
    await box.host.start(later(larger, { cpu: 1, memoryGiB: 0.25 }))
    assert.equal(await memoryOf(sandboxId, 'MemTotal'), 256)
    assert.equal((await cpusOf(sandboxId)).length, 1)
    await box.host.destroy(sandboxId)
    assert.deepEqual(await box.tracesOf(sandboxId), [])
  })

  test('a sandbox’s `MemFree` shrinks when a program uses memory, and grows when the memory is released', async () => {
    const { sandboxId } = await box.started({ memoryGiB: 0.5 })
    await until(async () => (await memoryOf(sandboxId, 'MemFree')) < 512)
    await box.run(sandboxId, 'dd if=/dev/zero of=/dev/shm/much bs=1M count=100 2>/dev/null')
    await until(async () => (await memoryOf(sandboxId, 'MemFree')) < 412)
    assert.ok((await memoryOf(sandboxId, 'Shmem')) >= 100)
    assert.ok((await memoryOf(sandboxId, 'MemAvailable')) < 412)
    await box.run(sandboxId, 'rm /dev/shm/much')
    await until(async () => (await memoryOf(sandboxId, 'MemFree')) > 412)
    await box.host.destroy(sandboxId)
  })

  test('root in a sandbox cannot write to /proc/meminfo, /proc/cpuinfo or the list of processors', async () => {
    const { sandboxId } = await box.started()
    for (const path of ['/proc/meminfo', '/proc/cpuinfo', '/sys/devices/system/cpu/online'])
      assert.notEqual((await box.run(sandboxId, `echo x > ${path}`)).exitCode, 0, path)
    await box.host.destroy(sandboxId)
  })

  test('sandboxes with one CPU are spread over the processors', async () => {
    const made = await Promise.all([box.started(), box.started()])
    const cpus = await Promise.all(made.map(async ({ sandboxId }) => (await cpusOf(sandboxId))[0]))
    assert.equal(new Set(cpus).size, Math.min(2, hostCpus().length))
    for (const { sandboxId } of made) await box.host.destroy(sandboxId)
  })

  test('an out-of-memory kill in a running sandbox is reported again until its report is accepted', async () => {
    const { sandboxId } = await box.started({ memoryGiB: 0.125 })
    const heard: [string, Cause][] = []
    const told = new Promise<void>((resolve) =>
      box.host.onMishap((...mishap) => {
        heard.push(mishap)
        if (heard.length === 2) resolve()
        return heard.length === 2
      }),
    )
    // Wait until the runner has read the memory use, which the kill then leaves unchanged. Only the kernel's counter shows the
    // runner the kill.
    await until(async () => (await memoryOf(sandboxId, 'MemFree')) < 128)
    assert.equal((await box.run(sandboxId, 'tail /dev/zero')).exitCode, 137)
    await soon(told)
    const detail = 'It ran out of memory (limit 0.125 GiB), and a process was killed for it.'
    const mishap = [sandboxId, { oomKilled: true, signal: 'SIGKILL', detail }]
    assert.deepEqual(heard, [mishap, mishap])
    assert.equal((await box.run(sandboxId, 'echo alive')).output, 'alive')
    await box.host.destroy(sandboxId)
  })

  test('a sandbox that reaches its limit of processes is reported with the limit, and keeps running', async () => {
    const { sandboxId } = await box.started({ memoryGiB: 0.25 })
    const told = new Promise<[string, Cause]>((resolve) =>
      box.host.onMishap((...mishap) => {
        resolve(mishap)
        return true
      }),
    )
    await box
      .run(sandboxId, 'n=0; while [ $n -lt 1100 ]; do sleep 4718 & n=$((n+1)); done 2> /dev/null')
      .catch(() => {})
    const detail = 'It has as many processes and threads as it may (limit 1024), and could not start another.'
    assert.deepEqual(await soon(told), [sandboxId, { detail }])
    assert.equal(box.host.get(sandboxId)?.status, 'started')
    await box.host.destroy(sandboxId)
  })

  test('the reported cause of a sandbox’s end names the memory limit only if memory ran out', async () => {
    const ends = (id: string) =>
      new Promise<Cause>((resolve) => box.host.onExit((sandboxId, cause) => sandboxId === id && resolve(cause)))
    const larger = await box.started({ memoryGiB: 0.5 })
    const { sandboxId } = larger
    const assignment = later(larger, { memoryGiB: 0.125 })
    await box.host.start(assignment)
    // The test fills /dev/shm until the kernel kills PID 1. Before PID 1, the kernel kills other processes, but their files in
    // /dev/shm stay. The limit of /dev/shm is above the memory limit, so that these files can fill the memory.
    await runSteps(builtLauncher(), [step.sharedMemory(box.pidOf(sandboxId), 512 * 1024 ** 2)])
    const ranOut = ends(sandboxId)
    let hasEnded = false
    void ranOut.then(() => {
      hasEnded = true
    })
    await until(async () => {
      if (!hasEnded) await box.run(sandboxId, 'dd if=/dev/zero of=/dev/shm/$$ bs=1M; sleep 0.1').catch(() => {})
      return hasEnded
    })
    const detail = 'It ran out of memory (limit 0.125 GiB) and was killed.'
    assert.deepEqual(await soon(ranOut), { oomKilled: true, signal: 'SIGKILL', detail })
    await box.host.start(assignment)
    assert.equal((await box.run(sandboxId, 'tail /dev/zero')).exitCode, 137)
    const killed = ends(sandboxId)
    process.kill(box.pidOf(sandboxId), 'SIGKILL')
    assert.deepEqual(await soon(killed), { detail: 'Its first process was ended from outside the sandbox.' })
    await box.host.destroy(sandboxId)
  })
})
