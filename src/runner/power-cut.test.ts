// Tests that everything that the runner has reported survives a power cut right after the report. Skipped without root.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { needsRoot } from '#test/needs-root.ts'
import { Recorder } from '#test/power-cut/recorder.ts'
import { cutsOf, layOut } from '#test/power-cut/remains.ts'
import { Journal } from './machine/journal.ts'
import { TestHost } from './testing/test-host.ts'

suite('after a power cut', { skip: needsRoot }, () => {
  let box: TestHost
  before(async () => {
    box = await TestHost.start()
  })
  after(async () => {
    await box?.[Symbol.asyncDispose]()
  })

  const parent = async () => {
    const assignment = await box.started()
    await box.run(assignment.sandboxId, 'echo kept > /root/file')
    return assignment
  }
  const kept = async (sandboxId: string) => (await box.run(sandboxId, 'cat /root/file')).output

  test('a snapshot whose creation was reported survives a power cut, with its base image', async () => {
    const { sandboxId } = await parent()
    await box.host.snapshot(sandboxId, 'shown')
    await box.cutPower()
    assert.equal((await box.host.template('shown'))?.base, 'small')
    const child = await box.started({ isNew: true, image: 'shown' })
    assert.equal(await kept(child.sandboxId), 'kept')
    await box.host.removeTemplate('shown')
  })

  test('after a power cut, a fork and a sandbox of a snapshot can start, if their first start was reported', async () => {
    const { sandboxId } = await parent()
    await box.host.snapshot(sandboxId, 'source')
    const children = [
      await box.started({ isNew: true, image: 'source' }),
      // Start the fork last: a later start of another sandbox would also write the fork's changes to the disk. The test would then
      // not notice if the fork's own start did not write them.
      await box.started({ isNew: true, forkOf: sandboxId }),
    ]
    await box.cutPower()
    for (const child of children) {
      await box.host.start({ ...child, isNew: false, generation: 2 })
      assert.equal(await kept(child.sandboxId), 'kept')
    }
    await box.host.removeTemplate('source')
  })

  test('a start or stop that was reported is still in the journal after a power cut', async () => {
    const sandboxes = join(box.directory, 'runner/sandboxes')
    await using recorder = await Recorder.attach()
    const assignment = await box.started()
    recorder.mark()
    await box.host.stop({ ...assignment, generation: 2, target: 'stopped', signal: 'SIGKILL' })
    recorder.mark()
    const operations = await recorder.stop()
    const expected = [undefined, 'started', 'stopped']
    const left = join(box.directory, 'left')
    let last = 0
    for (const { told, remains, after } of cutsOf(operations, sandboxes)) {
      mkdirSync(left)
      layOut(remains, left)
      const status = (await new Journal(left).read(assignment.sandboxId))?.spec.status
      // The journal may already contain a start or stop that the runner has not reported yet.
      assert.ok(status === expected[told] || status === expected[told + 1], `${status} ${after}`)
      rmSync(left, { recursive: true })
      last = told
    }
    assert.equal(last, 2, 'every mark was recorded')
  })

  test('a start or stop is reported only when the journal is on the disk, even if the disk is slow', async ({
    mock,
  }) => {
    const order: string[] = []
    let told = Promise.withResolvers<void>()
    const { writeSpec } = Journal.prototype
    mock.method(
      Journal.prototype,
      'writeSpec',
      async function (this: Journal, ...written: Parameters<typeof writeSpec>) {
        // Delay the write of the journal. A report that does not wait for the write then comes first, so that `order` is wrong.
        await Promise.race([told.promise, pause(3000)])
        await writeSpec.apply(this, written)
        order.push(written[1].status)
      },
    )
    const then = (what: string) => () => {
      order.push(what)
      told.resolve()
      told = Promise.withResolvers<void>()
    }
    const assignment = box.assignment()
    await box.host.start(assignment).then(then('told of the start'))
    const stop = { ...assignment, generation: 2, target: 'stopped', signal: 'SIGKILL' } as const
    await box.host.stop(stop).then(then('told of the stop'))
    assert.deepEqual(order, ['started', 'told of the start', 'stopped', 'told of the stop'])
  })

  test('if a power cut has emptied a sandbox’s files in /etc, the sandbox’s next start writes them again', async () => {
    const { sandboxId, ...rest } = await parent()
    const etc = join(box.directory, 'runner/pool/disks', sandboxId, 'etc')
    await box.host.stop({ ...rest, sandboxId, generation: 2, target: 'stopped', signal: 'SIGKILL' })
    const own = ['hosts', 'hostname', 'machine-id', 'image']
    for (const name of own) truncateSync(join(etc, name))
    await box.host.start({ ...rest, sandboxId, isNew: false, generation: 3 })
    for (const name of own) assert.notEqual(readFileSync(join(etc, name), 'utf8'), '', name)
  })

  test('a snapshot that has lost the record of its base image is not listed, and can be made again', async () => {
    const { sandboxId } = await parent()
    await box.host.snapshot(sandboxId, 'lost')
    truncateSync(join(box.directory, 'runner/pool/templates/lost/etc/image'))
    assert.deepEqual(await box.host.templates(), [])
    await box.host.snapshot(sandboxId, 'lost')
    assert.equal((await box.host.template('lost'))?.base, 'small')
    await box.host.removeTemplate('lost')
  })

  test('a sandbox whose disk has lost the record of its base image starts with its snapshot’s base image', async () => {
    const { sandboxId } = await parent()
    await box.host.snapshot(sandboxId, 'whole')
    const child = await box.started({ isNew: true, image: 'whole' })
    await box.host.stop({ ...child, generation: 2, target: 'stopped', signal: 'SIGKILL' })
    truncateSync(join(box.directory, 'runner/pool/disks', child.sandboxId, 'etc/image'))
    await box.host.start({ ...child, isNew: false, generation: 3 })
    assert.equal(await kept(child.sandboxId), 'kept')
    await box.host.removeTemplate('whole')
  })
})
