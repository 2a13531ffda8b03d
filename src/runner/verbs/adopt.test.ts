// Tests what a runner does with the sandboxes of an earlier runner. Skipped without root.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { users } from '#src/kit/confined.ts'
import { identityOf, type ProcessIdentity, signalProcess, waitUntilGone } from '#src/kit/process-identity.ts'
import { placesOf } from '#src/runner/machine/places.ts'
import { uidBase } from '#src/runner/oci/ids.ts'
import { KillableRunner } from '#src/runner/testing/killable-runner.ts'
import { cannotMapOwners, openTestHostIn, TestHost } from '#src/runner/testing/test-host.ts'
import { needsRoot } from '#test/needs-root.ts'

suite('a runner that starts after another runner has ended or was killed', { skip: needsRoot }, () => {
  let box: TestHost
  before(async () => {
    box = await TestHost.start()
  })
  after(async () => {
    await box[Symbol.asyncDispose]()
  })

  /** Kills PID 1 of a sandbox and waits until PID 1 is gone. The kernel has then ended all other processes of the sandbox. */
  const end = async (init: ProcessIdentity) => {
    signalProcess(init, 'SIGKILL')
    assert.ok(await waitUntilGone(init, 10_000))
  }
  const specOf = (sandboxId: string) => join(box.directory, 'runner/sandboxes', sandboxId, 'spec.json')

  test('a sandbox’s processes keep running when the runner ends; the next runner adopts the sandbox', async () => {
    await box.close()
    const killable = await KillableRunner.open(box)
    const assignment = box.assignment()
    const { sandboxId } = assignment
    await killable.asked({ verb: 'start', assignment })
    await killable.says('done')
    const pid = box.pidOf(sandboxId)
    await killable.kill()

    await box.open()
    assert.deepEqual(box.host.get(sandboxId)?.assignment, assignment)
    assert.equal(box.host.get(sandboxId)?.status, 'started')
    assert.equal(box.pidOf(sandboxId), pid)
    assert.equal((await box.run(sandboxId, 'echo still here')).output, 'still here')
    await box.host.destroy(sandboxId)
    assert.deepEqual(await box.tracesOf(sandboxId), [])
  })

  test('an upgraded runner moves agents’ sockets to a directory that only the gate’s group may enter', async () => {
    const { sandboxId } = await box.started()
    await box.close()
    const { sockets, formerSockets } = placesOf(box.instance, join(box.directory, 'runner'))
    mkdirSync(formerSockets, { recursive: true, mode: 0o700 })
    renameSync(join(sockets, `${sandboxId}.sock`), join(formerSockets, `${sandboxId}.sock`))
    chmodSync(join(formerSockets, `${sandboxId}.sock`), 0o600)
    await box.open()
    assert.equal((await box.run(sandboxId, 'echo still here')).output, 'still here')
    for (const [path, mode] of [
      [sockets, '710'],
      [join(sockets, `${sandboxId}.sock`), '660'],
    ] as const) {
      const found = statSync(path)
      assert.deepEqual([(found.mode & 0o777).toString(8), found.uid, found.gid], [mode, 0, users.gate])
    }
    await box.host.destroy(sandboxId)
    assert.deepEqual(await box.tracesOf(sandboxId), [])
  })

  test('a sandbox that ended while no runner ran becomes stopped, with a cause, and can be started again', async () => {
    const assignment = await box.started()
    const { sandboxId } = assignment
    await box.run(sandboxId, 'echo kept > /root/file')
    const init = identityOf(box.pidOf(sandboxId))
    await box.close()
    await end(init)

    await box.open()
    const held = box.host.get(sandboxId)
    assert.deepEqual(
      [held?.status, held?.cause],
      ['stopped', { detail: 'Its first process was ended from outside the sandbox.' }],
    )
    await box.host.start(assignment)
    assert.equal((await box.run(sandboxId, 'cat /root/file')).output, 'kept')
    await box.host.destroy(sandboxId)
  })

  test('a running sandbox whose journal says `archived` becomes `started` there, so its disk is kept', async () => {
    const { sandboxId } = await box.started()
    await box.close()
    const spec = JSON.parse(readFileSync(specOf(sandboxId), 'utf8'))
    // A runner that is killed during a restore leaves this status.
    writeFileSync(specOf(sandboxId), JSON.stringify({ ...spec, status: 'archived' }))
    await box.open()
    assert.deepEqual(JSON.parse(readFileSync(specOf(sandboxId), 'utf8')), spec)
    await box.host.destroy(sandboxId)
  })

  test('a sandbox that shared its user ids with other sandboxes gets ids of its own at its next start', async (t) => {
    if (!(await box.mapsOwners())) return t.skip(cannotMapOwners)
    await box.close()
    box.use(await openTestHostIn(box.instance, box.directory, { mapsOwners: false }))
    const assignment = await box.started()
    const { sandboxId } = assignment
    const uid = () => statSync(`/proc/${box.pidOf(sandboxId)}`).uid
    const owners = async () => (await box.run(sandboxId, 'stat -c %u:%g /root/file /open/file /bin/sh')).output
    await box.run(sandboxId, 'echo kept > /root/file; mkdir -m 777 /open')
    await box.run(sandboxId, 'echo kept > /open/file', 'daytona')
    const before = await owners()
    assert.equal(uid(), uidBase)
    await box.close()

    await box.open()
    assert.equal(await owners(), before, 'it runs on as it was')
    await box.host.stop({ ...assignment, generation: 2, target: 'stopped' })
    await box.host.start({ ...assignment, generation: 3 })
    assert.notEqual(uid(), uidBase)
    assert.equal(before, '0:0\n1000:1000\n0:0')
    assert.equal(await owners(), before)
    await box.host.destroy(sandboxId)
  })

  test('a sandbox whose start was interrupted by a runner restart becomes stopped, and can be started again', async () => {
    const assignment = await box.started()
    const { sandboxId } = assignment
    const init = identityOf(box.pidOf(sandboxId))
    await box.close()
    // Changes `run.json` to what it contains after the launch, before the start of the sandbox is complete.
    const path = join(box.directory, 'runner/sandboxes', sandboxId, 'run.json')
    const { pid: _, startTime: __, ...run } = JSON.parse(readFileSync(path, 'utf8'))
    writeFileSync(path, JSON.stringify(run))
    await end(init)

    await box.open()
    const held = box.host.get(sandboxId)
    assert.deepEqual([held?.status, held?.cause], ['stopped', undefined])
    await box.host.start(assignment)
    assert.equal((await box.run(sandboxId, 'echo here')).output, 'here')
    await box.host.destroy(sandboxId)
  })

  test('after a restart of the machine, each sandbox that was running is stopped, with the restart as cause', async () => {
    const assignment = await box.started()
    const { sandboxId } = assignment
    await box.close()
    const path = join(box.directory, 'runner/sandboxes', sandboxId, 'run.json')
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), bootId: 'an earlier one' }))
    await box.open()
    const held = box.host.get(sandboxId)
    assert.deepEqual([held?.status, held?.cause], ['stopped', { detail: 'The machine was restarted.' }])
    await box.host.destroy(sandboxId)
  })

  test('a sandbox that was stopped when its runner ended is still stopped in the next runner', async () => {
    const assignment = await box.started()
    await box.host.stop(assignment)
    await box.close()
    await box.open()
    assert.equal(box.host.get(assignment.sandboxId)?.status, 'stopped')
    await box.host.destroy(assignment.sandboxId)
  })

  test('a new runner removes a sandbox whose `spec.json` is damaged, and a disk without a journal', async () => {
    const { sandboxId } = await box.started()
    await box.close()
    writeFileSync(specOf(sandboxId), '{"assignm')
    execFileSync('btrfs', ['subvolume', 'create', join(box.directory, 'runner/pool/disks/stray')], { stdio: 'ignore' })
    await box.open()
    assert.equal(box.host.get(sandboxId), undefined)
    assert.deepEqual(await box.tracesOf(sandboxId), [])
    assert.deepEqual(await box.tracesOf('stray'), [])
  })

  for (const verb of ['start', 'stop', 'destroy'] as const)
    test(`if a runner is killed at any moment of a ${verb}, the next runner finishes or undoes the ${verb}`, async () => {
      for (const afterMs of [0, 8, 16, 24, 32, 48, 64, 90, 120, 180]) {
        const signal = 'SIGKILL'
        const assignment = verb === 'start' ? box.assignment({ signal }) : await box.started({ signal })
        const { sandboxId } = assignment
        await box.close()
        const killable = await KillableRunner.open(box)
        await killable.asked({ verb, assignment })
        await delay(afterMs)
        await killable.kill()

        await box.open()
        const status = box.host.get(sandboxId)?.status
        const pids = await box.cgroupOf(sandboxId).pids()
        if (status === 'started') {
          const here = await box.run(sandboxId, 'echo here').catch((error: unknown) => {
            // If the runner was killed during a stop or a destroy, the sandbox may be ending at this moment. `echo` may then fail.
            if (verb === 'start') throw error
          })
          if (here) assert.equal(here.output, 'here')
          else while (box.host.get(sandboxId)?.status === 'started') await delay(10)
        } else assert.deepEqual(pids, [], `${afterMs} ms: ${status}`)
        if (status === undefined) assert.deepEqual(await box.tracesOf(sandboxId), [], `${afterMs} ms`)
        // The test requests the verb again, as control does after a restart of the runner. This time the verb must succeed.
        if (verb === 'destroy') await box.host.destroy(sandboxId)
        else await box.host[verb](assignment)
        assert.equal(box.host.get(sandboxId)?.status, { start: 'started', stop: 'stopped', destroy: undefined }[verb])
        await box.host.destroy(sandboxId)
        assert.deepEqual(await box.tracesOf(sandboxId), [], `${afterMs} ms, destroyed`)
      }
    })
})
