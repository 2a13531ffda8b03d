import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { startControl } from '#test/control/harness.ts'
import { readTextArray, writeTextArray } from './text-array.ts'

suite('arrays of text', () => {
  test('arrays are read back as written, whatever the items contain', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' })), (items) => {
        assert.deepEqual(readTextArray(writeTextArray(items)), items)
      }),
    )
  })

  test('PostgreSQL reads and writes arrays in the same form', async () => {
    await using app = await startControl()
    for (const items of [[], ['a'], ['', 'NULL', 'b c'], ['"', '\\', '{,}', 'é\n'], ['plain', 'read:volumes']]) {
      const [row] = await app.database.sql`select ${items}::text[] as items, cardinality(${items}::text[]) as count`
      assert.deepEqual([row?.['items'], row?.['count']], [items, items.length])
    }
  })
})
