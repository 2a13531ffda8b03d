import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createAddressKeys, networkOf } from './address-key.ts'

suite('networkOf', () => {
  test('an address of IPv4 stands for itself, however it is written, and one of IPv6 for its /64', () => {
    for (const [address, network] of [
      ['192.0.2.7', '192.0.2.7'],
      ['::ffff:192.0.2.7', '192.0.2.7'],
      ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
      ['2001:0DB8:0001:0002::1', '2001:db8:1:2::/64'],
      ['2001:db8::', '2001:db8:0:0::/64'],
      ['::1', '0:0:0:0::/64'],
      ['fe80::1%eth0', 'fe80:0:0:0::/64'],
      ['no address', 'no address'],
      ['', ''],
    ] as const) {
      assert.equal(networkOf(address), network)
    }
  })
})

suite('createAddressKeys', () => {
  test('the same for one network, in slots of which there are only so many', () => {
    const keyOf = createAddressKeys()
    assert.equal(keyOf('2001:db8::1'), keyOf('2001:db8::ffff'))
    const keys = new Set(Array.from({ length: 200 }, (_, index) => keyOf(`10.0.0.${index}`)))
    assert.ok(keys.size > 190)
    assert.ok([...keys].every((key) => Number(key) >= 0 && Number(key) < 65_536))
    assert.notDeepEqual([...keys], [...new Set([...keys].map(createAddressKeys()))])
  })
})
