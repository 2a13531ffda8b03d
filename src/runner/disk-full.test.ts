// Tests verbs while the pool is full: existing data must stay undamaged, and no incomplete disk may be left.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { hasCode } from './cgroup/files.ts'
import { TestHost } from './testing/test-host.ts'

const poolBytes = 300 * 1024 ** 2

suite('a full disk of the host', { skip: needsRoot }, () => {
  let box: TestHost
  let filler: string
  before(async () => {
    box = await TestHost.start({ poolBytes })
    filler = join(box.directory, 'runner/pool/ballast')
  })
  after(async () => {
    await box?.[Symbol.asyncDispose]()
  })

  /** Fills the pool. Until the next sync, a write reserves more space than it needs, so there are several rounds. */
  const fill = () => {
    mkdirSync(filler)
    for (const round of [1, 2, 3, 4]) {
      for (const bytes of [4 * 1024 ** 2, 64 * 1024, 1024, 0]) {
        for (let n = 0; ; n++) {
          try {
            writeFileSync(join(filler, `${round}-${bytes}-${n}`), Buffer.alloc(bytes, n))
          } catch (error) {
            if (!hasCode(error, 'ENOSPC')) throw error
            break
          }
        }
      }
      execFileSync('sync', ['--file-system', filler])
    }
  }

  test('if the pool is full, a fork and a snapshot fail with that reason, and the sandbox keeps running', async () => {
    const parent = await box.started()
    const { sandboxId } = parent
    assert.equal((await box.run(sandboxId, 'echo kept > /root/file')).exitCode, 0)
    const pid = box.pidOf(sandboxId)
    fill()
    const child = box.assignment({ isNew: true, forkOf: sandboxId })
    await assert.rejects(box.host.start(child), /No space left on device/)
    await assert.rejects(box.host.snapshot(sandboxId, 'template'), /No space left on device/)
    assert.deepEqual(await box.host.templates(), [])
    await box.host.destroy(child.sandboxId)
    assert.deepEqual(await box.tracesOf(child.sandboxId), [])
    assert.deepEqual([(await box.run(sandboxId, 'cat /root/file')).output, box.pidOf(sandboxId)], ['kept', pid])
  })
})
