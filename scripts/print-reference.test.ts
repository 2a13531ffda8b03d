import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { openTestDatabase } from '#test/control/test-database.ts'
import { findStaleFiles } from './print-reference.ts'

suite('docs/reference', () => {
  test('docs/reference is what `node scripts/print-reference.ts` prints from the present code', async () => {
    await using opened = await openTestDatabase()
    assert.deepEqual(await findStaleFiles(opened.database.sql), [])
  })
})
