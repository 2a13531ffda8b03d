import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { hashKey, isSameHash, maskKey, newKey } from './secret.ts'

suite('the text of API keys', () => {
  test('a new API key is `dtn_` and 32 random bytes, and no two keys are equal', () => {
    const made = Array.from({ length: 100 }, newKey)
    for (const key of made) assert.match(key, /^dtn_[0-9a-f]{64}$/)
    assert.equal(new Set(made).size, made.length)
  })

  test('a masked API key shows only the first and last three characters', () => {
    assert.equal(maskKey('dtn_0123456789abc'), `dtn${'*'.repeat(20)}abc`)
  })

  test('`isSameHash` is true only for equal hashes of full length; an invalid hash does not equal itself', () => {
    assert.ok(isSameHash(hashKey('a'), hashKey('a')))
    assert.ok(!isSameHash(hashKey('a'), hashKey('b')))
    assert.ok(!isSameHash('', ''))
    assert.ok(!isSameHash(hashKey('a').slice(2), hashKey('a').slice(2)))
  })
})
