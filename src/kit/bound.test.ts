import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Bound } from './bound.ts'

suite('a bound', () => {
  test('takes no more than so many of each, nor of all together; what is given back is free again', () => {
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

  test('where others have taken all the room, each still has what it is sure of, in whichever pieces', () => {
    const bound = new Bound({ each: 10, all: 10, sure: 3 })
    assert.ok(bound.take('a', 10))
    assert.deepEqual(
      [bound.take('b', 4), bound.take('b', 2), bound.take('b', 2), bound.take('b', 1)],
      [false, true, false, true],
    )
    // Whoever has all of its own has no more.
    assert.equal(bound.take('a'), false)
    bound.give('a', 10)
    assert.ok(bound.take('b', 7))
  })
})
