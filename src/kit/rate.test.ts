import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readRate } from './rate.ts'

suite('reading a rate limit from a setting', () => {
  test('a rate limit may be any number of calls from 1 on, in a period from 1 second to a day', () => {
    assert.deepEqual(readRate('1000/60'), { limit: 1000, ttlSeconds: 60 })
    assert.deepEqual(readRate('1/86400'), { limit: 1, ttlSeconds: 86_400 })
    for (const wrong of [
      '',
      '5',
      '5/',
      '/5',
      '0/5',
      '5/0',
      '-1/5',
      '1.5/5',
      '5/86401',
      '9999999999/5',
      '5/5/5',
      ' 5/5',
    ]) {
      assert.equal(readRate(wrong), undefined, wrong)
    }
  })
})
