import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { suite, test } from 'node:test'
import { isWithin } from '#src/kit/networks.ts'
import { readOwnNetworks } from './own-networks.ts'
import { nextIpv4, nextIpv6, readNextNetworks } from './routes-of-host.ts'

suite('the networks of this host', () => {
  test('`readOwnNetworks` returns the networks of the host’s public addresses', () => {
    const own = readOwnNetworks(
      {
        eth0: [
          { address: '192.88.98.7', cidr: '192.88.98.7/24' },
          { address: '2a00:1:2:3::7', cidr: '2a00:1:2:3::7/64' },
        ],
        eth1: [{ address: '5.6.7.8', cidr: '5.6.7.8/32' }],
      },
      [],
    )
    for (const address of ['192.88.98.7', '192.88.98.1', '2a00:1:2:3::7', '2a00:1:2:3::1', '5.6.7.8']) {
      assert.ok(isWithin(own, address), address)
    }
    for (const address of ['192.88.97.1', '2a00:1:2:4::1', '5.6.7.9']) assert.ok(!isWithin(own, address), address)
  })

  test('`readOwnNetworks` never returns the whole Internet, whatever prefix an address has', () => {
    const own = readOwnNetworks(
      {
        tun0: [
          { address: '5.6.7.8', cidr: '5.6.7.8/1' },
          { address: '2a00:1:2:3::7', cidr: '2a00:1:2:3::7/3' },
          { address: '9.9.9.8', cidr: null },
        ],
      },
      [],
    )
    assert.ok(['5.6.7.8', '2a00:1:2:3::7', '9.9.9.8'].every((address) => isWithin(own, address)))
    assert.ok(['5.6.7.9', '1.1.1.1', '2a00:1:2:3::8'].every((address) => !isWithin(own, address)))
  })

  test('`readOwnNetworks` finds the gateway and the neighbours of a host with a /32 or /128 address', () => {
    const route = [
      'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT',
      'eth0\t00000000\t01070605\t0003\t0\t0\t0\t00000000\t0\t0\t0   ',
      'eth0\t00090605\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0   ',
      'tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0   ',
      // The last route has the flags 0201 (up and reject): its packets are rejected, so this route must be ignored.
      '*\t000A0605\t00000000\t0201\t0\t0\t0\t00FFFFFF\t0\t0\t0   ',
    ].join('\n')
    const zeros = '0'.repeat(32)
    const ipv6Route = [
      `${zeros} 00 ${zeros} 00 2a000001000200030000000000000001 00000400 00000003 00000000 00000003     eth0`,
      `2a000001000200040000000000000000 40 ${zeros} 00 ${zeros} 00000100 00000001 00000000 00000001     eth0`,
    ].join('\n')
    const own = readOwnNetworks({}, [...nextIpv4(route), ...nextIpv6(ipv6Route)])
    for (const address of ['5.6.7.1', '5.6.9.77', '2a00:1:2:3::1', '2a00:1:2:4::77']) {
      assert.ok(isWithin(own, address), address)
    }
    for (const address of ['5.6.7.2', '5.6.10.1', '1.1.1.1', '2a00:1:2:3::2'])
      assert.ok(!isWithin(own, address), address)
  })

  test('`readOwnNetworks` reads the routes of this machine', () => {
    const gateways = execFileSync('ip', ['-j', '-4', 'route', 'show', 'default'], { encoding: 'utf8' })
    const next = readNextNetworks().map(({ address }) => address)
    for (const { gateway } of JSON.parse(gateways || '[]') as { gateway?: string }[])
      if (gateway !== undefined) assert.ok(next.includes(gateway), gateway)
  })
})
