import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { startControl } from '#test/control/harness.ts'
import { readTextArray, writeTextArray } from './text-array.ts'

suite('arrays of text', () => {
  test('`readTextArray` reads what `writeTextArray` wrote, whatever the texts contain', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' })), (items) => {
        assert.deepEqual(readTextArray(writeTextArray(items)), items)
      }),
    )
  })

  test('PostgreSQL reads and returns arrays of text that contain quotes, braces, NULL and line breaks', async () => {
    await using app = await startControl()
    for (const items of [[], ['a'], ['', 'NULL', 'b c'], ['"', '\\', '{,}', 'é\n'], ['plain', 'read:volumes']]) {
      const [row] = await app.database.sql`select ${items}::text[] as items, cardinality(${items}::text[]) as count`
      assert.deepEqual([row?.['items'], row?.['count']], [items, items.length])
    }
  })
})
