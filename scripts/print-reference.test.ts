import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { findStalePages } from './print-reference.ts'

suite('docs/reference', () => {
  test('says what the code says; `node scripts/print-reference.ts` prints it anew', () => {
    assert.deepEqual(findStalePages(), [])
  })
})
