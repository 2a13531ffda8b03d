// Tests saves of real sandboxes. Needs root; without root the suite is skipped.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createCipheriv } from 'node:crypto'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { KillableRunner } from '#src/runner/testing/killable-runner.ts'
import { TestHost } from '#src/runner/testing/test-host.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'

const MiB = 1024 * 1024

suite('saving the disk of a stopped sandbox', { skip: needsRoot }, () => {
  let box: TestHost
  before(async () => {
    box = await TestHost.start()
  })
  after(async () => {
    await box[Symbol.asyncDispose]()
  })

  const said = async ({ sandboxId }: Assignment, line: string) => (await box.run(sandboxId, line)).output
  const store = ({ sandboxId }: Assignment) => join(box.directory, 'archive/sandboxes', sandboxId)
  const chunksOf = (assignment: Assignment) =>
    execFileSync('find', [join(store(assignment), 'chunks'), '-type', 'f'], { encoding: 'utf8' })
      .trim()
      .split('\n')
  const archivesOf = (assignment: Assignment) => readdirSync(join(store(assignment), 'archives'))
  /** Returns one line with inode and time for each file in the store. If a file is written again, its line changes. */
  const filesOf = (assignment: Assignment) =>
    execFileSync('find', [store(assignment), '-type', 'f', '-printf', '%i %T@ %p\n'], { encoding: 'utf8' })
      .trim()
      .split('\n')
      .sort()

  const stopped = (assignment: Assignment, generation: number, save?: string): Assignment => ({
    ...assignment,
    isNew: false,
    generation,
    target: 'stopped',
    ...(save === undefined ? {} : { save: { id: save } }),
  })

  const upperOf = ({ sandboxId }: Assignment) => join(box.directory, 'runner/pool/disks', sandboxId, 'upper')

  /**
   * Makes a stopped sandbox with three files of 10 MiB. Their content is the same in every run of the test, because the number of
   * new chunks depends on it.
   */
  const makeStopped = async (): Promise<Assignment> => {
    const assignment = await box.started()
    await said(assignment, 'for i in 1 2 3; do > /root/big$i; done')
    await box.host.stop(stopped(assignment, 2))
    for (const index of [1, 2, 3]) {
      const noise = createCipheriv('aes-128-ctr', Buffer.alloc(16, 40 + index), Buffer.alloc(16))
      writeFileSync(join(upperOf(assignment), `root/big${index}`), noise.update(Buffer.alloc(10 * MiB)))
    }
    return assignment
  }

  /** The hashes of the files of the disk, read on the host. */
  const sumOf = (assignment: Assignment) =>
    execFileSync('sh', ['-c', 'sha256sum big*'], {
      cwd: join(upperOf(assignment), 'root'),
      encoding: 'utf8',
    })

  test('a save copies a stopped sandbox’s disk once; a repeated save, also by a new runner, writes nothing', async () => {
    const assignment = await makeStopped()
    const sum = sumOf(assignment)
    const asked = stopped(assignment, 2, 'one')
    const saved = await box.host.save(asked)
    assert.deepEqual([saved?.id, archivesOf(assignment)], ['one', ['one.json']])
    assert.equal(box.host.get(assignment.sandboxId)?.status, 'stopped')
    const files = filesOf(assignment)
    await box.close()
    await box.open()
    assert.deepEqual(await box.host.save(asked), saved)
    assert.deepEqual(filesOf(assignment), files)
    await box.host.start({ ...assignment, isNew: false, generation: 3 })
    assert.equal(sumOf(assignment), sum)
    assert.equal(await box.host.save(asked), undefined)
    await box.host.destroy(assignment.sandboxId, 'with archives')
    assert.equal(existsSync(store(assignment)), false)
  })

  test('after a small change of a disk, a save writes few chunks, and removes chunks that no archive needs', async () => {
    const assignment = await makeStopped()
    const first = await box.host.save(stopped(assignment, 2, 'one'))
    const chunks = new Set(chunksOf(assignment))
    const before = filesOf(assignment)
    await box.host.start({ ...assignment, isNew: false, generation: 3 })
    await said(assignment, 'rm /root/big1; echo changed > /root/small')
    await box.host.stop(stopped(assignment, 4))
    const second = await box.host.save(stopped(assignment, 4, 'two'))
    assert.notEqual(second?.sha256, first?.sha256)
    const now = chunksOf(assignment)
    const added = now.filter((name) => !chunks.has(name))
    assert.ok(added.length <= 3, `${added.length} chunks of ${now.length} are new`)
    assert.ok([...chunks].some((name) => !now.includes(name)))
    assert.deepEqual(archivesOf(assignment), ['two.json'])
    const kept = filesOf(assignment).filter((line) => before.includes(line))
    assert.equal(kept.length, now.length - added.length)
    await box.host.destroy(assignment.sandboxId, 'with archives')
  })

  test('archiving a saved sandbox writes nothing to the store; the next start restores the saved disk', async () => {
    const assignment = await makeStopped()
    const sum = sumOf(assignment)
    const saved = await box.host.save(stopped(assignment, 2, 'one'))
    assert.ok(saved)
    const files = filesOf(assignment)
    await box.host.archive({ ...assignment, isNew: false, generation: 3, target: 'archived', archive: { id: 'one' } })
    assert.deepEqual(box.host.get(assignment.sandboxId)?.archive, saved)
    assert.deepEqual(filesOf(assignment), files)
    const { id, sha256 } = saved
    await box.host.start({ ...assignment, isNew: false, generation: 4, archive: { id, sha256 } })
    assert.equal(sumOf(assignment), sum)
    await box.host.destroy(assignment.sandboxId, 'with archives')
  })

  test('a start, resize or destroy aborts a running save; the disk is unharmed and the next save complete', async () => {
    const assignment = await makeStopped()
    const sum = sumOf(assignment)
    const { sandboxId } = assignment
    const verbs: [string, () => Promise<void>][] = [
      ['start', () => box.host.start({ ...assignment, isNew: false, generation: 3 })],
      ['resize', () => box.host.stop({ ...stopped(assignment, 5), diskGiB: assignment.diskGiB + 1 })],
      ['destroy', () => box.host.destroy(sandboxId, 'with archives')],
    ]
    let generation = 2
    for (const [verb, act] of verbs) {
      const saving = box.host.save(stopped(assignment, generation, `before-${verb}`))
      await delay(30)
      const doing = act()
      assert.equal(await saving, undefined, verb)
      await doing
      if (verb === 'start') {
        assert.equal(sumOf(assignment), sum)
        generation = 4
        await box.host.stop(stopped(assignment, generation))
      }
      if (verb !== 'destroy') assert.ok(await box.host.save(stopped(assignment, generation, `after-${verb}`)))
    }
    assert.equal(existsSync(store(assignment)), false)
    assert.deepEqual(await box.tracesOf(sandboxId), [])
  })

  for (const afterMs of [0, 60, 150, 300])
    test(`a save whose runner is killed after ${afterMs} ms is finished by the next runner`, async () => {
      const assignment = await makeStopped()
      const sum = sumOf(assignment)
      const order = { verb: 'save', assignment: stopped(assignment, 2, 'one') } as const
      await box.close()
      const killable = await KillableRunner.open(box)
      await killable.asked(order)
      await delay(afterMs)
      await killable.kill()
      await box.open()
      const saved = await box.host.save(order.assignment)
      assert.ok(saved)
      assert.deepEqual(archivesOf(assignment), ['one.json'])
      // A restore from the save makes a disk with the same files.
      const { id, sha256 } = saved
      await box.host.archive({ ...assignment, isNew: false, generation: 3, target: 'archived', archive: { id } })
      await box.host.start({ ...assignment, isNew: false, generation: 4, archive: { id, sha256 } })
      assert.equal(sumOf(assignment), sum)
      await box.host.destroy(assignment.sandboxId, 'with archives')
      assert.deepEqual(await box.tracesOf(assignment.sandboxId), [])
      assert.equal(existsSync(store(assignment)), false)
    })
})
