import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Bound } from './bound.ts'

suite('a bound', () => {
  test('limits each owner and all together; what is given back is free again', () => {
    const bound = new Bound({ each: 2, all: 3 })
    assert.deepEqual(
      ['a', 'a', 'a', 'b', 'b', 'c'].map((key) => bound.take(key)),
      [true, true, false, true, false, false],
    )
    bound.give('a')
    assert.ok(bound.take('c'))
    bound.give('a')
    assert.equal(bound.has('a'), false)
  })

  test('each owner gets its sure share even if others have used all the room', () => {
    const bound = new Bound({ each: 10, all: 10, sure: 3 })
    assert.ok(bound.take('a', 10))
    assert.deepEqual(
      [bound.take('b', 4), bound.take('b', 2), bound.take('b', 2), bound.take('b', 1)],
      [false, true, false, true],
    )
    // An owner that has used its share gets no more.
    assert.equal(bound.take('a'), false)
    bound.give('a', 10)
    assert.ok(bound.take('b', 7))
  })
})
