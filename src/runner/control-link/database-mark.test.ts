import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { isOurDatabase } from './database-mark.ts'

suite('the database that sandboxes of a host are in', () => {
  test('is the first that was served from here, and no other', () => {
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
})
