import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { readCursor, writeCursor } from './cursor.ts'

suite('cursors, which mark where the next page of a list begins', () => {
  test('`readCursor` returns the values from which `writeCursor` made the cursor of a page', () => {
    const cursor = { sort: 'createdAt', order: 'desc', value: '2026-01-02T03:04:05.678Z', id: 'a' } as const
    assert.deepEqual(readCursor(writeCursor(cursor), { sort: 'createdAt', order: 'desc', valueIs: 'time' }), cursor)
  })

  test('`readCursor` refuses a cursor that was made for another sort column, order or type', () => {
    const text = writeCursor({ sort: 'name', order: 'asc', value: 'box', id: 'a' })
    assert.throws(() => readCursor(text, { sort: 'name', order: 'desc', valueIs: 'text' }), { status: 400 })
    assert.throws(() => readCursor(text, { sort: 'id', order: 'asc', valueIs: 'text' }), { status: 400 })
    assert.throws(() => readCursor(text, { sort: 'name', order: 'asc', valueIs: 'number' }), { status: 400 })
    assert.throws(() => readCursor(text, { sort: 'name', order: 'asc', valueIs: 'time' }), { status: 400 })
  })

  test('`readCursor` refuses any text that is not a cursor', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String(), fc.json()), (text) => {
        assert.throws(() => readCursor(text, { sort: 'name', order: 'asc', valueIs: 'text' }), { status: 400 })
      }),
    )
  })

  test('`readCursor` refuses a cursor with a value that the sort column cannot contain', () => {
    const number = { sort: 'cpu', order: 'asc', valueIs: 'number' } as const
    const time = { sort: 'createdAt', order: 'asc', valueIs: 'time' } as const
    for (const value of [2 ** 31, -(2 ** 31), 1e300, 1.5, '1', null]) {
      const text = Buffer.from(JSON.stringify(['cpu', 'asc', value, 'a'])).toString('base64url')
      assert.throws(() => readCursor(text, number), { status: 400 }, String(value))
    }
    for (const value of ['0000-01-01T00:00:00.000Z', '-000001-01-01T00:00:00.000Z', '+012026-01-01T00:00:00.000Z']) {
      const text = Buffer.from(JSON.stringify(['createdAt', 'asc', value, 'a'])).toString('base64url')
      assert.throws(() => readCursor(text, time), { status: 400 }, value)
    }
  })

  test('`readCursor` refuses a cursor with a NUL character', () => {
    const text = writeCursor({ sort: 'name', order: 'asc', value: 'a\0b', id: 'a' })
    assert.throws(() => readCursor(text, { sort: 'name', order: 'asc', valueIs: 'text' }), { status: 400 })
  })
})
