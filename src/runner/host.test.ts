// Tests the life of real sandboxes on this machine: start, stop, destroy and failures. Needs root.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { silentLog } from '#src/kit/log.ts'
import { identityOf, isAlive, waitUntilGone } from '#src/kit/process-identity.ts'
import { agentAt } from '#src/toolbox/agent/agent.ts'
import type { Cause, Report } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { Keeper } from './keeping/keeper.ts'
import { TestHost } from './testing/test-host.ts'

suite('the sandboxes of a host', { skip: needsRoot }, () => {
  let box: TestHost
  before(async () => {
    box = await TestHost.start()
  })
  after(async () => {
    await box[Symbol.asyncDispose]()
  })

  test('`start` makes a sandbox that runs commands, with its own host name and files in /etc', async () => {
    const { sandboxId } = await box.started()
    assert.equal(box.host.get(sandboxId)?.status, 'started')
    const said = await box.run(sandboxId, 'hostname; cat /etc/hostname /etc/resolv.conf; stat -c %a /etc/machine-id')
    const hostname = sandboxId.slice(0, 12)
    assert.deepEqual(said, { exitCode: 0, output: `${hostname}\n${hostname}\nnameserver 192.0.2.53\n644` })
  })

  test('the runner runs a first command in a warm sandbox during its start, and none in other sandboxes', async () => {
    const firstPid = async (isWarm?: true) => {
      const { sandboxId } = await box.started(isWarm ? { isWarm } : {})
      return Number((await box.run(sandboxId, 'echo $$')).output)
    }
    const [cold, warm] = [await firstPid(), await firstPid(true)]
    assert.ok(warm > cold, `${warm} > ${cold}`)
    const odd = await box.started({ isWarm: true, user: 'nobody-of-that-name' })
    assert.equal(box.host.get(odd.sandboxId)?.status, 'started')
  })

  test('a sandbox has the same files and machine id after a stop and a start', async () => {
    const assignment = await box.started()
    const { sandboxId } = assignment
    await box.run(sandboxId, 'echo kept > /home/daytona/file; echo 192.0.2.1 friend >> /etc/hosts')
    const before = await box.run(sandboxId, 'cat /etc/machine-id')
    await box.host.stop({ ...assignment, generation: 2, target: 'stopped' })
    assert.equal(box.host.get(sandboxId)?.status, 'stopped')
    assert.deepEqual(await box.cgroupOf(sandboxId).pids(), [])
    await box.host.start({ ...assignment, generation: 3 })
    const after = await box.run(sandboxId, 'cat /home/daytona/file; tail -n 1 /etc/hosts; cat /etc/machine-id')
    assert.equal(after.output, `kept\n192.0.2.1 friend\n${before.output}`)
  })

  test('a repeated start, stop or destroy of a sandbox changes nothing, even while the first call still runs', async () => {
    const assignment = box.assignment()
    const { sandboxId } = assignment
    await Promise.all([box.host.start(assignment), box.host.start(assignment)])
    const pid = box.pidOf(sandboxId)
    await box.host.start(assignment)
    assert.equal(box.pidOf(sandboxId), pid)
    await Promise.all([box.host.stop(assignment), box.host.stop(assignment)])
    await box.host.stop(assignment)
    await Promise.all([box.host.destroy(sandboxId), box.host.destroy(sandboxId)])
    await box.host.destroy(sandboxId)
    assert.equal(box.host.get(sandboxId), undefined)
  })

  test('destroy leaves nothing on the host: no process, mount, cgroup, disk, socket or directory', async () => {
    const { sandboxId } = await box.started()
    await box.run(sandboxId, 'echo x > /home/daytona/file; sleep 1000 > /dev/null 2>&1 &')
    const pids = await box.cgroupOf(sandboxId).pids()
    assert.equal(pids.length, 2)
    assert.notDeepEqual(await box.tracesOf(sandboxId), [])
    await box.host.destroy(sandboxId)
    assert.deepEqual(await box.tracesOf(sandboxId), [])
    assert.deepEqual(await box.cgroupOf(sandboxId).pids(), [])
  })

  test('a sandbox deleted in its first start is reported as destroyed only when nothing of it is left', async () => {
    for (const afterMs of [0, 2, 5, 10, 20, 40]) {
      const { promise, resolve } = Promise.withResolvers<string>()
      using keeper = new Keeper({ host: box.host, report: ({ state }) => resolve(state), log: silentLog() })
      const assignment = box.assignment({ isNew: true })
      keeper.take(assignment)
      await delay(afterMs)
      keeper.take({ ...assignment, generation: 2, target: 'destroyed' })
      const said = await promise
      // If the start ended before the delete came, the first report is about the start.
      if (said === 'destroyed') assert.deepEqual(await box.tracesOf(assignment.sandboxId), [], `after ${afterMs} ms`)
      await box.host.destroy(assignment.sandboxId)
    }
  })

  test('a FIFO in place of /etc/passwd and /etc/group does not block a start', { timeout: 20_000 }, async () => {
    const assignment = await box.started()
    const { sandboxId } = assignment
    await box.host.stop({ ...assignment, target: 'stopped', generation: 2 })
    const etc = join(box.directory, 'runner/pool/disks', sandboxId, 'upper/etc')
    mkdirSync(etc, { recursive: true })
    for (const name of ['passwd', 'group']) execFileSync('mkfifo', [join(etc, name)])
    await box.host.start({ ...assignment, isNew: false, generation: 3 })
    assert.equal((await box.run(sandboxId, 'id -u')).output, '0')
    await box.host.destroy(sandboxId)
  })

  test('an endless /etc/passwd does not block a start, because at most its first 4 MiB are read', async () => {
    const assignment = await box.started()
    const { sandboxId } = assignment
    await box.run(sandboxId, 'echo text > /etc/file')
    await box.host.stop({ ...assignment, target: 'stopped', generation: 2 })
    const etc = join(box.directory, 'runner/pool/disks', sandboxId, 'upper/etc')
    const [first, cut] = ['first:x:4242:4243::/:/bin/sh\n', 'cut:x:10']
    const between = `${'#'.repeat(4 * 1024 ** 2 - first.length - cut.length - 1)}\n`
    for (const name of ['passwd', 'group']) {
      writeFileSync(join(etc, name), `${first}${between}${cut}00:1000::/:/bin/sh\n`)
      truncateSync(join(etc, name), 4 * 1024 ** 4)
    }
    await box.host.start({ ...assignment, isNew: false, generation: 3 })
    for (const [user, uid] of [
      ['root', '0'],
      ['first', '4242'],
    ] as const) {
      assert.deepEqual(await box.run(sandboxId, 'id -u', user), { exitCode: 0, output: uid })
    }
    await assert.rejects(box.run(sandboxId, 'id -u', 'cut'), { stage: 'user', errno: 'ENOENT' })
    const files = agentAt(box.host.get(sandboxId)!.socketPath).files('root')
    await files.setPermissions('/etc/file', { owner: 'first', group: '1' })
    const { uid, gid, owner, group } = await files.stat('/etc/file')
    assert.deepEqual([uid, gid, owner, group], [4242, 1, 'first', ''])
    await box.host.destroy(sandboxId)
  })

  test('`destroy` does not wait for a start whose sandbox never answers', { timeout: 20_000 }, async () => {
    const assignment = await box.started()
    const { sandboxId } = assignment
    await box.host.stop({ ...assignment, target: 'stopped', generation: 2 })
    const starting = box.host.start({ ...assignment, isNew: false, generation: 3 }).catch(() => {})
    // Wait until the sandbox has processes. Then stop these processes, so that the sandbox never answers.
    const cgroup = box.cgroupOf(sandboxId)
    for (let pids: number[] = []; pids.length === 0; await new Promise(setImmediate)) {
      pids = await cgroup.pids().catch(() => [])
      for (const pid of pids) process.kill(pid, 'SIGSTOP')
    }
    await box.host.destroy(sandboxId)
    await starting
    assert.equal(box.host.get(sandboxId), undefined)
  })

  test('no overlay of a sandbox is in the host’s mount table', async () => {
    const { sandboxId } = await box.started()
    const traces = await box.tracesOf(sandboxId)
    assert.deepEqual(
      traces.filter((trace) => trace.includes(' - overlay ')),
      [],
    )
  })

  test('a stop lets processes finish; a forced stop during its grace period ends them immediately', async () => {
    const assignment = await box.started()
    const { sandboxId } = assignment
    await box.run(
      sandboxId,
      `(trap 'echo tidy > /home/daytona/end; exit' TERM; echo > /traps; while :; do sleep 0.1; done) >/dev/null 2>&1 &
      until [ -e /traps ]; do sleep 0.02; done; rm /traps`,
    )
    await box.host.stop(assignment)
    await box.host.start(assignment)
    assert.equal((await box.run(sandboxId, 'cat /home/daytona/end')).output, 'tidy')

    await box.run(
      sandboxId,
      `(trap '' TERM; echo > /traps; exec sleep 1000) >/dev/null 2>&1 & until [ -e /traps ]; do sleep 0.02; done`,
    )
    const polite = box.host.stop(assignment)
    const began = performance.now()
    await box.host.stop({ ...assignment, signal: 'SIGKILL' })
    await polite
    // The first stop alone would wait 10 seconds. If less than 9 seconds have passed, the forced stop has ended the processes.
    assert.ok(performance.now() - began < 9_000)
    assert.equal(box.host.get(sandboxId)?.status, 'stopped')
  })

  test('a start fails with the reason if the sandbox’s image is not on the host; a later start can succeed', async () => {
    const assignment = box.assignment({ image: 'absent' })
    const { sandboxId } = assignment
    await assert.rejects(box.host.start(assignment), /The image absent is not on this runner/)
    const held = box.host.get(sandboxId)
    assert.deepEqual([held?.status, held?.errorReason], ['error', 'The image absent is not on this runner.'])
    await box.host.start({ ...assignment, image: 'small' })
    assert.deepEqual([box.host.get(sandboxId)?.status, box.host.get(sandboxId)?.errorReason], ['started', undefined])
  })

  test('a start of a sandbox that the OCI runtime refuses fails with the reason, and leaves no process', async () => {
    // In this image `/etc` is a file, so the sandbox's own files cannot be mounted and the runtime refuses the start.
    mkdirSync(join(box.directory, 'broken'))
    writeFileSync(join(box.directory, 'broken/etc'), '')
    const assignment = box.assignment({ image: 'broken' })
    const { sandboxId } = assignment
    await assert.rejects(box.host.start(assignment), /The sandbox could not be started: .*etc/)
    assert.deepEqual(await box.cgroupOf(sandboxId).pids(), [])
    assert.equal(box.host.get(sandboxId)?.status, 'error')
    await box.host.destroy(sandboxId)
    assert.deepEqual(await box.tracesOf(sandboxId), [])
  })

  test('a start of a sandbox whose disk is gone fails instead of using an empty disk', async () => {
    const assignment = await box.started()
    const { sandboxId } = assignment
    await box.host.stop(assignment)
    rmSync(join(box.directory, 'runner/pool/disks', sandboxId), { recursive: true })
    for (const attempt of ['first', 'second'])
      await assert.rejects(box.host.start(assignment), /The disk of the sandbox is gone/, attempt)
  })

  test('the runner refuses a sandbox id that could be read as a path', async () => {
    assert.throws(() => void box.host.destroy('../x'), /characters that are not allowed/)
    assert.throws(() => void box.host.start(box.assignment({ sandboxId: 'a/b' })), /characters that are not allowed/)
  })

  test('a sandbox that ends by itself is cleaned up and reported as stopped with its cause', async () => {
    const { sandboxId } = await box.started()
    const exited = new Promise<Cause>((resolve) => {
      box.host.onExit((id, cause) => {
        if (id === sandboxId) resolve(cause)
      })
    })
    process.kill(box.pidOf(sandboxId), 'SIGKILL')
    assert.deepEqual(await exited, { detail: 'Its first process was ended from outside the sandbox.' })
    assert.equal(box.host.get(sandboxId)?.status, 'stopped')
    assert.deepEqual(await box.cgroupOf(sandboxId).pids(), [])
  })

  test('a resize does not start a sandbox that has just ended, even if the runner has not noticed the end', async () => {
    const assignment = await box.started()
    const { sandboxId } = assignment
    const init = identityOf(box.pidOf(sandboxId))
    const reports: Report[] = []
    using keeper = new Keeper({ host: box.host, log: silentLog(), report: (report) => reports.push(report) })
    process.kill(init.pid, 'SIGKILL')
    assert.ok(await waitUntilGone(init, 10_000))
    keeper.take({ ...assignment, generation: 2, isRunning: true, memoryGiB: 0.5 })
    while (reports.length === 0) await new Promise(setImmediate)
    assert.deepEqual([reports[0]?.state, reports[0]?.generation], ['stopped', 2])
    assert.match(reports[0]?.cause?.detail ?? '', /was ended/)
    // A newer assignment requests a start, so the sandbox is started again.
    keeper.take({ ...assignment, generation: 3 })
    while (reports.length === 1) await new Promise(setImmediate)
    assert.deepEqual([reports[1]?.state, reports[1]?.generation], ['started', 3])
  })

  test('a newer assignment changes CPU, memory and disk of a sandbox while it keeps running', async () => {
    const assignment = await box.started()
    const { sandboxId } = assignment
    const pid = box.pidOf(sandboxId)
    await box.host.start({ ...assignment, generation: 2, cpu: 2, memoryGiB: 0.5, diskGiB: 2 })
    assert.equal(box.pidOf(sandboxId), pid)
    const { output } = await box.run(
      sandboxId,
      'cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null',
    )
    assert.equal(output, String(512 * 1024 ** 2))
    assert.equal(box.host.get(sandboxId)?.assignment.generation, 2)
  })

  test('the runner identifies a process by its pid and start time together', () => {
    assert.equal(isAlive({ pid: process.pid, startTime: '1' }), false)
  })
})
