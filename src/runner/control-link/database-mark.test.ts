import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { cutEverywhere } from '#test/power-cut/cut-everywhere.ts'
import { isOurDatabase } from './database-mark.ts'

suite('the database that a runner belongs to', () => {
  test('a runner accepts only the first database that it served, and rejects any other', () => {
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

  test('after a power cut a runner still accepts only the database that it served before', { skip: needsRoot }, () =>
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
