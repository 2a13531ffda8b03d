import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { addRow, labelsOf, rowsOf, rowsProblem } from './label-rows.ts'

suite('the rows of labels', () => {
  test('labels that are shown as rows are read back from these rows unchanged, even a key like `__proto__`', () => {
    const labels = JSON.parse('{"team":"blue","empty":"","__proto__":"x","constructor":"y"}') as Record<string, string>
    assert.deepEqual(Object.entries(labelsOf(rowsOf(labels))), Object.entries(labels))
  })

  test('a new row in the form of labels gets a unique id, even after a row was removed', () => {
    const rows = addRow(addRow(addRow([])))
    const after = addRow(rows.filter(({ id }) => id !== 1))
    assert.equal(new Set(after.map(({ id }) => id)).size, 3)
  })

  test('the form of a sandbox’s labels reports an empty key and a duplicate key', () => {
    const rows = rowsOf({ a: '1', b: '2' })
    assert.equal(rowsProblem(rows), undefined)
    assert.match(rowsProblem(addRow(rows)) ?? '', /needs a key/)
    assert.match(rowsProblem([...rows, { id: 9, key: 'a', value: '' }]) ?? '', /"a" is used twice/)
  })
})
