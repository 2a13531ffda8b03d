import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isPublicAddress, isWithin, readNetworks } from './networks.ts'

suite('public addresses', () => {
  test('this host’s addresses, and private, reserved and unassigned IP addresses, do not count as public', () => {
    const addresses = [
      '0.0.0.0',
      '10.1.2.3',
      '100.64.0.1',
      '100.127.255.254',
      '127.0.0.1',
      '127.255.255.255',
      '168.63.129.16',
      '169.254.169.254',
      '172.16.0.1',
      '172.31.255.255',
      '192.0.0.1',
      '192.168.1.1',
      '198.18.0.1',
      '224.0.0.1',
      '239.255.255.255',
      '255.255.255.255',
      '::',
      '::1',
      '::127.0.0.1',
      '::ffff:127.0.0.1',
      '::ffff:8.8.8.8',
      '::ffff:0:127.0.0.1',
      '64:ff9b::7f00:1',
      '64:ff9b:1::1',
      '100::1',
      '2001::1',
      '2001:db8::1',
      '2002:7f00:1::',
      '3fff::1',
      'fc00::1',
      'fd00:ec2::254',
      'fe80::1',
      'fe80::1%eth0',
      'fec0::1',
      'ff02::1',
      '2606:4700::1%eth0',
      'example.com',
      '',
    ]
    assert.deepEqual(addresses.filter(isPublicAddress), [])
  })

  test('IP addresses to which everybody can connect count as public', () => {
    const addresses = ['1.1.1.1', '9.255.255.255', '11.0.0.0', '172.15.0.1', '172.32.0.1', '223.255.255.255']
    const six = ['2001:4860:4860::8888', '2606:4700:4700::1111', '2a00:1450::1']
    assert.deepEqual(
      [...addresses, ...six].filter((address) => !isPublicAddress(address)),
      [],
    )
  })
})

suite('settings that list networks (`readNetworks`)', () => {
  test('a setting with a list of networks may have addresses and CIDRs of IPv4 and IPv6, also with spaces', () => {
    const networks = readNetworks('10.0.0.0/8, 127.0.0.1,fd00::/8')
    assert.ok(networks)
    const within = ['10.9.9.9', '127.0.0.1', 'fd12::1'].map((address) => isWithin(networks, address))
    assert.deepEqual(within, [true, true, true])
    const without = ['11.0.0.1', '127.0.0.2', 'fe80::1', 'fd12::1%eth0'].map((address) => isWithin(networks, address))
    assert.deepEqual(without, [false, false, false, false])
  })

  test('a setting with a list of networks is refused if it is not a list of addresses and CIDRs', () => {
    const given = [
      '',
      'localhost',
      '10.0.0.0/33',
      'fd00::/129',
      '10.0.0.0/',
      '10.0.0/8',
      '10.0.0.0/-1',
      'fe80::1%lo/64',
      '10.0.0.1,',
    ]
    assert.deepEqual(
      given.filter((text) => readNetworks(text) !== undefined),
      [],
    )
  })
})
