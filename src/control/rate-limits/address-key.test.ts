import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { suite, test } from 'node:test'
import { createAddressKeys } from './address-key.ts'

suite('`createAddressKeys`', () => {
  test('`createAddressKeys` maps all addresses of a network to one key, and has a limited number of keys', () => {
    const keyOf = createAddressKeys(randomBytes(32))
    assert.equal(keyOf('2001:db8::1'), keyOf('2001:db8::ffff'))
    const keys = new Set(Array.from({ length: 200 }, (_, index) => keyOf(`10.0.0.${index}`)))
    assert.ok(keys.size > 190)
    assert.ok([...keys].every((key) => Number(key) >= 0 && Number(key) < 65_536))
    assert.notDeepEqual([...keys], [...new Set([...keys].map(createAddressKeys(randomBytes(32))))])
  })
})
