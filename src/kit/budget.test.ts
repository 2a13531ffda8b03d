import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Budget } from './budget.ts'

suite('a budget that several owners share', () => {
  test('a budget limits each owner and all owners together; an owner can take a returned amount again', () => {
    const budget = new Budget({ each: 2, all: 3 })
    assert.deepEqual(
      ['a', 'a', 'a', 'b', 'b', 'c'].map((key) => budget.take(key)),
      [true, true, false, true, false, false],
    )
    budget.give('a')
    assert.ok(budget.take('c'))
    budget.give('a')
    assert.equal(budget.has('a'), false)
  })

  test('each owner of a budget gets an assured amount even if other owners have used the whole budget', () => {
    const budget = new Budget({ each: 10, all: 10, sure: 3 })
    assert.ok(budget.take('a', 10))
    assert.deepEqual(
      [budget.take('b', 4), budget.take('b', 2), budget.take('b', 2), budget.take('b', 1)],
      [false, true, false, true],
    )
    // The budget is used up, and `a` already holds more than `sure`, the amount that every owner gets in any case.
    assert.equal(budget.take('a'), false)
    budget.give('a', 10)
    assert.ok(budget.take('b', 7))
  })

  test('with `ofFree: 1`, an owner can take until it holds about as much as is still free', () => {
    const budget = new Budget({ all: 100, ofFree: 1 })
    assert.equal(budget.takeUpTo('a', 80), 50)
    assert.equal(budget.takeUpTo('a', 80), 0)
    assert.equal(budget.takeUpTo('b', 10), 10)
    // Owner `a` holds 50, which is more than the 40 that are free. So `a` can take nothing more, but keeps its 50.
    assert.deepEqual([budget.take('a'), budget.takeUpTo('b', 80)], [false, 15])
    budget.give('a', 50)
    assert.equal(budget.has('a'), false)
    assert.equal(budget.takeUpTo('c', 80), 38)
  })
})
