import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isWithin } from '#src/kit/networks.ts'
import { readOwnNetworks } from './own-networks.ts'

suite('the networks of this host', () => {
  test('hold its public addresses, and those of its neighbours', () => {
    const own = readOwnNetworks({
      eth0: [
        { address: '192.88.98.7', cidr: '192.88.98.7/24' },
        { address: '2a00:1:2:3::7', cidr: '2a00:1:2:3::7/64' },
      ],
      eth1: [{ address: '5.6.7.8', cidr: '5.6.7.8/32' }],
    })
    for (const address of ['192.88.98.7', '192.88.98.1', '2a00:1:2:3::7', '2a00:1:2:3::1', '5.6.7.8']) {
      assert.ok(isWithin(own, address), address)
    }
    for (const address of ['192.88.97.1', '2a00:1:2:4::1', '5.6.7.9']) assert.ok(!isWithin(own, address), address)
  })

  test('do not hold the whole Internet, whatever prefix an address has', () => {
    const own = readOwnNetworks({
      tun0: [
        { address: '5.6.7.8', cidr: '5.6.7.8/1' },
        { address: '2a00:1:2:3::7', cidr: '2a00:1:2:3::7/3' },
        { address: '9.9.9.8', cidr: null },
      ],
    })
    assert.ok(['5.6.7.8', '2a00:1:2:3::7', '9.9.9.8'].every((address) => isWithin(own, address)))
    assert.ok(['5.6.7.9', '1.1.1.1', '2a00:1:2:3::8'].every((address) => !isWithin(own, address)))
  })
})
