import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { networkOf } from './network-of.ts'

suite('the network of an address, for limits (`networkOf`)', () => {
  test('a caller’s network is the address itself for IPv4, in one spelling, and the /64 for IPv6', () => {
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
