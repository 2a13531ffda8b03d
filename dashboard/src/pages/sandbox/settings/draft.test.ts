import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { edited, viewOf } from './draft.ts'

suite('the form of a setting that several people may change', () => {
  test('until the user types, a settings form shows the saved value and has no changes', () => {
    assert.deepEqual(viewOf({ minutes: 5 }, undefined), { value: { minutes: 5 }, isDirty: false, isStale: false })
  })

  test('if a saved value changes during an edit, the settings form keeps the edit and is marked as stale', () => {
    const draft = edited('a', edited('a', undefined, 'ab'), 'abc')
    assert.deepEqual(viewOf('a', draft), { value: 'abc', isDirty: true, isStale: false })
    assert.deepEqual(viewOf('x', draft), { value: 'abc', isDirty: true, isStale: true })
    assert.equal(viewOf('x', edited('x', draft, 'abcd')).isStale, true)
  })

  test('after a save, a settings form has no unsaved change, and the next edit starts from the saved value', () => {
    const draft = edited('a', undefined, 'b')
    assert.deepEqual(viewOf('b', draft), { value: 'b', isDirty: false, isStale: false })
    assert.deepEqual(viewOf('b', edited('b', draft, 'c')), { value: 'c', isDirty: true, isStale: false })
  })
})
