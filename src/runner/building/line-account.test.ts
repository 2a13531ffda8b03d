import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LineAccount } from './line-account.ts'

test('`LineAccount` sums the bytes of all cached lines and of their base images, each base image once', () => {
  const account = new LineAccount(new Map([['base', 100]]))
  const line = { base: 'base' }
  const isOver = () => [account.bytes, account.isOver(2, 1000), account.isOver(1, 1000), account.isOver(0, 1000)]
  for (const bytes of [1, 2, 3]) account.add(line, bytes)
  assert.deepEqual(isOver(), [106, true, true, true])
  account.remove(line, 3)
  assert.deepEqual(isOver(), [103, false, true, true])
  account.remove(line, 2)
  assert.deepEqual(isOver(), [101, false, false, true])
  assert.equal(account.isOver(1, 100), true)
  account.remove(line, 1)
  assert.deepEqual(isOver(), [0, false, false, false])
})
