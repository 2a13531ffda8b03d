// Tests forks of sandboxes, and snapshots that are made of sandboxes. Skipped without root.
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { NotRecoverable } from '#src/runner/machine/machine.ts'
import { KillableRunner } from '#src/runner/testing/killable-runner.ts'
import { TestHost } from '#src/runner/testing/test-host.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'

suite('forks of a sandbox', { skip: needsRoot }, () => {
  let box: TestHost
  before(async () => {
    box = await TestHost.start()
  })
  after(async () => {
    await box[Symbol.asyncDispose]()
  })

  const childOf = ({ sandboxId }: Assignment, changes: Partial<Assignment> = {}) =>
    box.assignment({ isNew: true, forkOf: sandboxId, ...changes })
  const said = async ({ sandboxId }: Assignment, line: string) => (await box.run(sandboxId, line)).output

  test('a fork has its own host name and a copy of its parent’s disk; the two disks then change separately', async () => {
    const parent = await box.started()
    await said(parent, 'rm /bin/tail; echo one > /root/file; echo 192.0.2.1 friend >> /etc/hosts; echo x > /dev/shm/x')
    const pid = box.pidOf(parent.sandboxId)
    const child = childOf(parent)
    await box.host.start(child)
    assert.equal(await said(child, 'cat /root/file; ls /bin/tail /dev/shm 2>/dev/null'), 'one\n/dev/shm:')
    const own = 'hostname; cat /etc/hostname /etc/machine-id /etc/hosts'
    const [ofParent, ofChild] = [(await said(parent, own)).split('\n'), (await said(child, own)).split('\n')]
    assert.deepEqual(ofChild.slice(0, 2), Array(2).fill(child.sandboxId.slice(0, 12)))
    assert.notEqual(ofChild[2], ofParent[2])
    assert.match(ofChild[2] ?? '', /^[0-9a-f]{32}$/)
    assert.deepEqual([ofChild.includes('192.0.2.1 friend'), ofParent.includes('192.0.2.1 friend')], [false, true])

    await said(child, 'echo two > /root/file')
    await said(parent, 'echo three > /root/other')
    assert.deepEqual([await said(parent, 'cat /root/file'), await said(child, 'ls /root')], ['one', 'file'])
    assert.equal(box.pidOf(parent.sandboxId), pid)
    await box.host.destroy(parent.sandboxId)
    assert.equal(await said(child, 'cat /root/file'), 'two', 'it outlives its parent')
    const grandchild = childOf(child)
    await box.host.start(grandchild)
    assert.equal(await said(grandchild, 'cat /root/file'), 'two')
  })

  test('a stopped or paused sandbox can be forked, and stays stopped or paused', async () => {
    const parent = await box.started()
    await said(parent, 'echo kept > /root/file')
    await box.host.pause({ ...parent, generation: 2, target: 'paused' })
    const one = childOf(parent)
    await box.host.start(one)
    assert.equal(box.host.get(parent.sandboxId)?.status, 'paused')
    await box.host.stop({ ...parent, generation: 3, target: 'stopped' })
    const other = childOf(parent)
    await box.host.start(other)
    assert.deepEqual([await said(one, 'cat /root/file'), await said(other, 'cat /root/file')], ['kept', 'kept'])
    assert.equal(box.host.get(parent.sandboxId)?.status, 'stopped')
  })

  test('a fork made while a program writes lines has all lines up to one moment; the parent has all lines', async () => {
    const parent = await box.started()
    await said(parent, '(i=0; while [ ! -e /dev/shm/end ]; do i=$((i+1)); echo $i; done > /root/log) 2>&1 &')
    const children = Array.from({ length: 6 }, () => childOf(parent))
    await Promise.all(children.map((child) => box.host.start(child)))
    await said(parent, 'echo > /dev/shm/end; sleep 0.1')
    for (const one of [parent, ...children]) {
      const lines = (await said(one, 'cat /root/log')).split('\n')
      // A fork's last line may be incomplete: the program was writing when the disk was copied.
      if (one !== parent) lines.pop()
      assert.deepEqual(
        lines.findIndex((line, index) => line !== String(index + 1)),
        -1,
      )
    }
  })

  test('data that a fork shares with its parent counts towards the fork’s disk limit', async () => {
    const parent = await box.started({ diskGiB: 1 })
    await said(parent, 'dd if=/dev/zero of=/root/big bs=1M count=40 conv=fsync')
    const child = childOf(parent, { diskGiB: 0.0625 })
    await box.host.start(child)
    const write = (count: number) =>
      box.run(child.sandboxId, `dd if=/dev/zero of=/root/more bs=1M count=${count} conv=fsync`)
    assert.equal((await write(8)).exitCode, 0)
    assert.notEqual((await write(40)).exitCode, 0)
    assert.equal(
      (await box.run(parent.sandboxId, 'dd if=/dev/zero of=/root/more bs=1M count=40 conv=fsync')).exitCode,
      0,
    )
  })

  test('a fork starts with its parent’s disk as it was at the time of the copy, even if the parent is gone', async () => {
    const parent = await box.started()
    await box.run(parent.sandboxId, 'echo then > /root/file')
    const child = childOf(parent)
    await Promise.all([box.host.copyParent(child), box.host.copyParent(child)])
    await box.run(parent.sandboxId, 'echo later > /root/file')
    await box.host.destroy(parent.sandboxId)
    await box.host.start(child)
    assert.equal((await box.run(child.sandboxId, 'cat /root/file')).output, 'then')
    const unborn = childOf(child)
    await box.host.copyParent(unborn)
    await box.host.destroy(unborn.sandboxId)
    assert.deepEqual(await box.tracesOf(unborn.sandboxId), [])
  })

  test('a fork of a missing sandbox fails with NotRecoverable, and leaves nothing on the host', async () => {
    const child = childOf(box.assignment())
    await assert.rejects(box.host.start(child), (error) => error instanceof NotRecoverable)
    assert.equal(box.host.get(child.sandboxId)?.status, 'error')
    await box.host.destroy(child.sandboxId)
    assert.deepEqual(await box.tracesOf(child.sandboxId), [])
    const own = box.assignment({ isNew: true })
    await assert.rejects(box.host.start({ ...own, forkOf: own.sandboxId }), NotRecoverable)
  })

  test('a start makes a disk for a new sandbox, but fails for any other sandbox whose disk is missing', async () => {
    await assert.rejects(box.host.start(box.assignment({ isNew: false })), /The disk of the sandbox is gone/)
    const assignment = await box.started({ isNew: true })
    await box.host.stop(assignment)
    rmSync(join(box.directory, 'runner/pool/disks', assignment.sandboxId), { recursive: true })
    await assert.rejects(box.host.start({ ...assignment, isNew: false }), NotRecoverable)
  })

  test('if the runner is killed during a fork, the fork is complete or absent, and its parent is unchanged', async () => {
    const parent = await box.started()
    await said(parent, 'dd if=/dev/zero of=/root/big bs=1M count=20 2>/dev/null; echo end > /root/file')
    for (const afterMs of [0, 4, 8, 12, 16, 24, 32, 48, 64, 90]) {
      const child = childOf(parent)
      await box.close()
      const killable = await KillableRunner.open(box)
      await killable.asked({ verb: 'start', assignment: child })
      await delay(afterMs)
      await killable.kill()
      await box.open()
      assert.equal(box.host.get(parent.sandboxId)?.status, 'started', `${afterMs} ms`)
      assert.equal(await said(parent, 'cat /root/file'), 'end', `${afterMs} ms`)
      await box.host.start(child)
      assert.equal(await said(child, 'cat /root/file'), 'end', `${afterMs} ms`)
      await box.host.destroy(child.sandboxId)
      assert.deepEqual(await box.tracesOf(child.sandboxId), [], `${afterMs} ms`)
    }
  })
})

suite('a snapshot made of a sandbox', { skip: needsRoot }, () => {
  let box: TestHost
  before(async () => {
    box = await TestHost.start()
  })
  after(async () => {
    await box[Symbol.asyncDispose]()
  })
  const said = async ({ sandboxId }: Assignment, line: string) => (await box.run(sandboxId, line)).output

  test('a sandbox started from a snapshot has the snapshot’s disk, even if the original sandbox is gone', async () => {
    const original = await box.started()
    await said(original, 'echo then > /root/file')
    await box.host.snapshot(original.sandboxId, 'tool')
    await said(original, 'echo later > /root/file')
    assert.equal(box.host.get(original.sandboxId)?.status, 'started')
    await box.host.snapshot(original.sandboxId, 'tool')
    const templates = async () => (await box.host.templates()).map(({ image, base }) => ({ image, base }))
    assert.deepEqual(await templates(), [{ image: 'tool', base: 'small' }])
    assert.ok(((await box.host.templates())[0]?.sizeBytes ?? 0) > 0)
    await box.host.destroy(original.sandboxId)

    const made = await Promise.all([1, 2].map(() => box.started({ image: 'tool', isNew: true })))
    for (const one of made) assert.equal(await said(one, 'cat /root/file'), 'then')
    const [first, second] = made as [Assignment, Assignment]
    assert.notEqual(await said(first, 'cat /etc/machine-id'), await said(second, 'cat /etc/machine-id'))
    await said(first, 'echo changed > /root/file')
    await box.host.snapshot(first.sandboxId, 'tool-2')
    assert.deepEqual(
      (await templates()).find(({ image }) => image === 'tool-2'),
      { image: 'tool-2', base: 'small' },
    )

    await box.host.removeTemplate('tool')
    await box.host.stop(first)
    await box.host.start({ ...first, generation: 2, isNew: false })
    assert.equal(await said(first, 'cat /root/file'), 'changed', 'its disk does not need the image any more')
    const third = await box.started({ image: 'tool-2', isNew: true })
    assert.equal(await said(third, 'cat /root/file'), 'changed')
    await assert.rejects(box.host.start(box.assignment({ image: 'tool', isNew: true })), /tool is not on this runner/)
  })

  test('a snapshot of a missing sandbox fails with NotRecoverable', async () => {
    await assert.rejects(box.host.snapshot(box.assignment().sandboxId, 'none'), NotRecoverable)
  })
})
