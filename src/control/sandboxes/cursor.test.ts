import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { readCursor, writeCursor } from './cursor.ts'

suite('the cursor of a listing', () => {
  test('comes back as it was given', () => {
    const cursor = { sort: 'createdAt', order: 'desc', value: '2026-01-02T03:04:05.678Z', id: 'a' } as const
    assert.deepEqual(readCursor(writeCursor(cursor), { sort: 'createdAt', order: 'desc', valueIs: 'time' }), cursor)
  })

  test('is refused for another sort or order', () => {
    const text = writeCursor({ sort: 'name', order: 'asc', value: 'box', id: 'a' })
    assert.throws(() => readCursor(text, { sort: 'name', order: 'desc', valueIs: 'text' }), { status: 400 })
    assert.throws(() => readCursor(text, { sort: 'id', order: 'asc', valueIs: 'text' }), { status: 400 })
    assert.throws(() => readCursor(text, { sort: 'name', order: 'asc', valueIs: 'number' }), { status: 400 })
    assert.throws(() => readCursor(text, { sort: 'name', order: 'asc', valueIs: 'time' }), { status: 400 })
  })

  test('anything else is refused, never misread and never a crash', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String(), fc.json()), (text) => {
        assert.throws(() => readCursor(text, { sort: 'name', order: 'asc', valueIs: 'text' }), { status: 400 })
      }),
    )
  })

  test('a NUL inside is refused before the database sees it', () => {
    const text = writeCursor({ sort: 'name', order: 'asc', value: 'a\0b', id: 'a' })
    assert.throws(() => readCursor(text, { sort: 'name', order: 'asc', valueIs: 'text' }), { status: 400 })
  })
})
