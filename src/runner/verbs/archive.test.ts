// Tests archives and restores of real sandboxes. Needs root; without root the suite is skipped.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { KillableRunner } from '#src/runner/testing/killable-runner.ts'
import { TestHost } from '#src/runner/testing/test-host.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { checkReturns } from './archive.ts'

test('an archive of a disk with more than 250,000 directories is refused, and the error says so', () => {
  const extent = { bytesApart: 0, directories: 250_000 }
  checkReturns(extent, 1)
  const because = /has 250,001 directories; a disk with more than 250,000 cannot be archived/
  for (const limit of [1, undefined])
    assert.throws(() => checkReturns({ ...extent, directories: 250_001 }, limit), because)
})

suite('archive and restore', { skip: needsRoot }, () => {
  let box: TestHost
  before(async () => {
    box = await TestHost.start()
  })
  after(async () => {
    await box[Symbol.asyncDispose]()
  })

  const archived = (assignment: Assignment, id = 'first'): Assignment => ({
    ...assignment,
    isNew: false,
    generation: assignment.generation + 1,
    target: 'archived',
    archive: { id },
  })
  const brought = (assignment: Assignment): Assignment => {
    const { sandboxId, generation } = assignment
    const archive = box.host.get(sandboxId)?.archive
    assert.ok(archive, 'it is archived')
    const { id, sha256 } = archive
    return { ...assignment, isNew: false, generation: generation + 1, target: 'started', archive: { id, sha256 } }
  }
  const said = async ({ sandboxId }: Assignment, line: string) => (await box.run(sandboxId, line)).output
  const store = ({ sandboxId }: Assignment) => join(box.directory, 'archive/sandboxes', sandboxId)
  const chunksOf = (assignment: Assignment) =>
    execFileSync('find', [join(store(assignment), 'chunks'), '-type', 'f'], { encoding: 'utf8' })
      .trim()
      .split('\n')
  const diskOf = ({ sandboxId }: Assignment) => join(box.directory, 'runner/pool/disks', sandboxId)

  const fill = `rm /bin/tail; mkdir -p /root/d; echo kept > /root/d/file; ls -la /bin > /root/list; stat -c %a /root/d;
    dd if=/dev/urandom of=/root/big bs=1M count=6 2>/dev/null; hostname >> /etc/hosts`

  test('a disk is not archived if its files exceed the disk limit once they no longer share blocks', async () => {
    const assignment = await box.started({ diskGiB: 0.125 })
    const { sandboxId } = assignment
    await said(assignment, 'dd if=/dev/zero of=/root/a bs=1M count=50')
    const [one, other] = ['a', 'b'].map((name) => join(diskOf(assignment), 'upper/root', name))
    execFileSync('cp', ['--reflink=always', one!, other!])
    const refusedOf = () => box.host.get(sandboxId)?.refused
    await box.host.archive(archived(assignment))
    assert.deepEqual([box.host.get(sandboxId)?.status, refusedOf()], ['archived', undefined])
    const back = brought(archived(assignment))
    await box.host.start(back)
    execFileSync('cp', ['--reflink=always', one!, `${other}2`])
    await box.host.archive(archived(back, 'second'))
    assert.equal(box.host.get(sandboxId)?.status, 'stopped')
    assert.match(refusedOf() ?? '', /without sharing they need 0\.2 GiB/)
    await box.host.start({ ...back, generation: 9 })
    assert.equal(await said(assignment, 'ls /root'), 'a\nb\nb2')
  })

  test('an archive removes a sandbox’s disk from the host, and the next start restores the disk unchanged', async () => {
    const assignment = await box.started()
    const { sandboxId } = assignment
    await said(assignment, fill)
    const look = 'cat /etc/machine-id /etc/hosts /root/d/file; ls /bin/tail; stat -c "%s %Y %u" /root/big /root/d'
    const before = await said(assignment, look)
    const progress: number[] = []
    await box.host.archive(archived(assignment), ({ percent }) => progress.push(percent))
    const held = box.host.get(sandboxId)
    assert.deepEqual([held?.status, held?.archive?.id, existsSync(diskOf(assignment))], ['archived', 'first', false])
    assert.ok(progress.length > 0 && progress.every((percent) => percent >= 0 && percent < 100))
    assert.deepEqual(await box.cgroupOf(sandboxId).pids(), [])
    await box.host.archive(archived(assignment))

    await box.close()
    await box.open()
    assert.deepEqual(box.host.get(sandboxId)?.archive, held?.archive)
    const restored = brought(archived(assignment))
    await box.host.start(restored)
    assert.equal(await said(assignment, look), before)
    await box.host.destroy(sandboxId, 'with archives')
    assert.deepEqual(await box.tracesOf(sandboxId), [])
    assert.equal(existsSync(store(assignment)), false)
  })

  test('a restored disk survives a power cut right after the sandbox has started', async () => {
    const assignment = await box.started()
    await said(assignment, fill)
    await box.host.archive(archived(assignment))
    const back = brought(archived(assignment))
    await box.host.start(back)
    // When a restored sandbox was reported as started, its archive may be removed. So the next start must work without the archive.
    const { archive: _, ...withoutArchive } = back
    await box.cutPower()
    await box.host.start({ ...withoutArchive, generation: 9 })
    assert.equal(await said(assignment, 'cat /root/d/file; stat -c %s /root/big'), 'kept\n6291456')
  })

  test('paused and stopped sandboxes can be archived, and a second archive replaces the first one', async () => {
    const assignment = await box.started()
    await said(assignment, fill)
    await box.host.pause({ ...assignment, generation: 2, target: 'paused' })
    await box.host.archive(archived({ ...assignment, generation: 2 }))
    const again = brought({ ...assignment, generation: 3 })
    await box.host.start(again)
    await said(assignment, 'echo second > /root/d/file; rm /root/big')
    await box.host.stop({ ...again, generation: 5, target: 'stopped' })
    await box.host.archive(archived({ ...again, generation: 5 }, 'second'))
    assert.deepEqual(readdirSync(join(store(assignment), 'archives')), ['second.json'])
    await box.host.start(brought({ ...assignment, generation: 6 }))
    assert.equal(await said(assignment, 'cat /root/d/file'), 'second')
  })

  test('another runner can restore a sandbox from its archive alone', async () => {
    const assignment = await box.started()
    await said(assignment, fill)
    await box.host.archive(archived(assignment))
    const there = brought(archived(assignment))
    // After the destroy this host has nothing of the sandbox left, so the host can play the part of another runner.
    await box.host.destroy(assignment.sandboxId)
    assert.equal(box.host.get(assignment.sandboxId), undefined)
    await box.host.start(there)
    assert.equal(await said(assignment, 'cat /root/d/file'), 'kept')
  })

  test('if the store fails while a sandbox is archived, the sandbox is stopped and keeps its disk', async () => {
    const assignment = await box.started()
    await said(assignment, fill)
    const place = join(box.directory, 'archive')
    renameSync(place, `${place}.away`)
    writeFileSync(place, 'no directory')
    try {
      await box.host.archive(archived(assignment))
    } finally {
      rmSync(place)
      renameSync(`${place}.away`, place)
    }
    const held = box.host.get(assignment.sandboxId)
    assert.equal(held?.status, 'stopped')
    assert.match(held?.refused ?? '', /archive store/)
    await box.host.start({ ...assignment, generation: 3 })
    assert.equal(await said(assignment, 'cat /root/d/file'), 'kept')
  })

  test('a restore from a damaged archive is refused with the reason, and the sandbox stays archived', async () => {
    const assignment = await box.started()
    await said(assignment, fill)
    await box.host.archive(archived(assignment))
    const [chunk = ''] = chunksOf(assignment)
    const whole = readFileSync(chunk)
    const damaged = Buffer.from(whole)
    // The last chunk of a disk may have only a few bytes.
    const middle = damaged.length >> 1
    damaged.writeUInt8(damaged.readUInt8(middle) ^ 1, middle)
    writeFileSync(chunk, damaged)
    const wanted = brought(archived(assignment))
    await box.host.start(wanted)
    const held = box.host.get(assignment.sandboxId)
    assert.equal(held?.status, 'archived')
    assert.match(held?.refused ?? '', /archive .*is damaged/)
    assert.equal(existsSync(diskOf(assignment)), false)
    writeFileSync(chunk, whole)
    await box.host.start({ ...wanted, generation: 9 })
    assert.equal(await said(assignment, 'cat /root/d/file'), 'kept')
  })

  test('a restore that makes a disk but cannot limit its size removes the disk, and a later start succeeds', async () => {
    const assignment = await box.started()
    await said(assignment, fill)
    await box.host.archive(archived(assignment))
    const wanted = brought(archived(assignment))
    // In a full pool, btrfs makes the disk but can refuse the next step. Here the launcher refuses the limit, which is too large.
    await box.host.start({ ...wanted, diskGiB: 1e20 })
    const held = box.host.get(assignment.sandboxId)
    assert.deepEqual([held?.status, held?.refused], ['archived', 'limit: not a number'])
    assert.equal(existsSync(diskOf(assignment)), false)
    await box.host.start({ ...wanted, generation: 9 })
    assert.equal(await said(assignment, 'cat /root/d/file'), 'kept')
  })

  test('a delete aborts a running archive, and nothing of the sandbox’s disk and archive is left', async () => {
    const assignment = await box.started()
    await said(assignment, 'dd if=/dev/urandom of=/root/big bs=1M count=40 2>/dev/null')
    const began = Promise.withResolvers<void>()
    const archiving = box.host.archive(archived(assignment), () => began.resolve())
    archiving.catch(() => undefined)
    await began.promise
    await box.host.destroy(assignment.sandboxId, 'with archives')
    await assert.rejects(archiving)
    assert.deepEqual(await box.tracesOf(assignment.sandboxId), [])
    assert.equal(existsSync(store(assignment)), false)
  })

  test('a delete does not wait for a failing archive store; a later runner removes the archive', async () => {
    const assignment = await box.started()
    await said(assignment, fill)
    await box.host.archive(archived(assignment))
    const place = join(box.directory, 'archive')
    renameSync(place, `${place}.away`)
    writeFileSync(place, 'no directory')
    try {
      await box.host.destroy(assignment.sandboxId, 'with archives')
    } finally {
      rmSync(place)
      renameSync(`${place}.away`, place)
    }
    assert.equal(box.host.get(assignment.sandboxId), undefined)
    assert.ok(existsSync(store(assignment)))
    await box.close()
    await box.open()
    assert.equal(existsSync(store(assignment)), false)
    assert.deepEqual(await box.tracesOf(assignment.sandboxId), [])
  })

  for (const verb of ['archive', 'start'] as const)
    test(`if a runner is killed while it ${verb === 'archive' ? 'archives' : 'restores'} a disk, the next runner finishes the work`, async () => {
      for (const afterMs of [0, 20, 60, 120, 200, 400]) {
        const assignment = await box.started({ signal: 'SIGKILL' })
        await said(assignment, fill)
        const wanted = archived(assignment)
        if (verb === 'start') await box.host.archive(wanted)
        const order = { verb, assignment: verb === 'start' ? brought(wanted) : wanted }
        await box.close()
        const killable = await KillableRunner.open(box)
        await killable.asked(order)
        await delay(afterMs)
        await killable.kill()
        await box.open()
        await box.host[verb](order.assignment)
        if (verb === 'archive') await box.host.start(brought(wanted))
        assert.equal(await said(assignment, 'cat /root/d/file; ls /bin/tail 2>/dev/null'), 'kept', `${afterMs} ms`)
        await box.host.destroy(assignment.sandboxId, 'with archives')
        assert.deepEqual(await box.tracesOf(assignment.sandboxId), [], `${afterMs} ms`)
        assert.equal(existsSync(store(assignment)), false)
      }
    })
})
