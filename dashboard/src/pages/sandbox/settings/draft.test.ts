import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { edited, viewOf } from './draft.ts'

suite('a form on a setting that others change too', () => {
  test('without an edit the form follows the saved value', () => {
    assert.deepEqual(viewOf({ minutes: 5 }, undefined), { value: { minutes: 5 }, isDirty: false, isStale: false })
  })

  test('an edit stays when somebody else changes the saved value, and the form says so', () => {
    const draft = edited('a', edited('a', undefined, 'ab'), 'abc')
    assert.deepEqual(viewOf('a', draft), { value: 'abc', isDirty: true, isStale: false })
    assert.deepEqual(viewOf('x', draft), { value: 'abc', isDirty: true, isStale: true })
    assert.equal(viewOf('x', edited('x', draft, 'abcd')).isStale, true)
  })

  test('an edit that equals the saved value is none, so that the next edit begins from there', () => {
    const draft = edited('a', undefined, 'b')
    assert.deepEqual(viewOf('b', draft), { value: 'b', isDirty: false, isStale: false })
    assert.deepEqual(viewOf('b', edited('b', draft, 'c')), { value: 'c', isDirty: true, isStale: false })
  })
})
