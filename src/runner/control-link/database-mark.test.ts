import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { cutEverywhere } from '#test/power-cut/cut-everywhere.ts'
import { isOurDatabase } from './database-mark.ts'

suite('the database that a runner belongs to', () => {
  test('a runner accepts the first database that control uses, and rejects any other database afterwards', () => {
    const scratch = mkdtempSync(join(tmpdir(), 'alcove-mark-'))
    try {
      assert.deepEqual(
        ['one', 'one', 'two', 'one'].map((id) => isOurDatabase(scratch, id)),
        [true, true, false, true],
      )
    } finally {
      rmSync(scratch, { recursive: true })
    }
  })

  test('after a power cut a runner still accepts only the database that it accepted before', { skip: needsRoot }, () =>
    cutEverywhere(
      (directory, mark) => {
        assert.equal(isOurDatabase(directory, 'one'), true)
        mark()
      },
      ({ told, directory, after }) => {
        if (told > 0) assert.equal(isOurDatabase(directory, 'two'), false, after)
        else assert.equal(isOurDatabase(directory, 'one'), true, after)
      },
    ),
  )
})
