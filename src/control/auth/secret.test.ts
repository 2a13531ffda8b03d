import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { hashKey, isSameHash, maskKey, newKey } from './secret.ts'

suite('keys', () => {
  test('a new key is dtn_ and 32 random bytes, and no two are alike', () => {
    const made = Array.from({ length: 100 }, newKey)
    for (const key of made) assert.match(key, /^dtn_[0-9a-f]{64}$/)
    assert.equal(new Set(made).size, made.length)
  })

  test('a masked key shows three characters at each end', () => {
    assert.equal(maskKey('dtn_0123456789abc'), `dtn${'*'.repeat(20)}abc`)
  })

  test('two hashes are equal only in full length; an invalid hash is equal to nothing, not even to itself', () => {
    assert.ok(isSameHash(hashKey('a'), hashKey('a')))
    assert.ok(!isSameHash(hashKey('a'), hashKey('b')))
    assert.ok(!isSameHash('', ''))
    assert.ok(!isSameHash(hashKey('a').slice(2), hashKey('a').slice(2)))
  })
})
