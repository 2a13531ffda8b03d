import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { openTestDatabase } from '#test/control/test-database.ts'
import { findStalePages } from './print-reference.ts'

suite('docs/reference', () => {
  test('says what the code says; `node scripts/print-reference.ts` prints it anew', async () => {
    await using opened = await openTestDatabase()
    assert.deepEqual(await findStalePages(opened.database.sql), [])
  })
})
