import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitAfter } from './waits.ts'

test('the dashboard’s wait before it connects again doubles with each failure, up to 15 seconds', () => {
  const waits = [1, 2, 3, 4, 5, 6, 100].map((failures) => waitAfter(failures, 1))
  assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 15_000, 15_000])
})

test('the dashboard’s wait before it connects again is shortened at random, by at most a quarter', () => {
  assert.equal(waitAfter(3, 0), 1500)
})
