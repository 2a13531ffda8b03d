import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { networksOfHost } from './host-networks.ts'

const wayOut = { dst: 'default', gateway: '8.1.0.1', dev: 'eth0' }

suite('networks of the host that sandboxes must not reach', () => {
  test('gateways and on-link networks of every routing table are closed to sandboxes, even if public', () => {
    const routes = [wayOut, { dst: '8.1.0.0/24', dev: 'eth0' }, { dst: '9.9.9.9', dev: 'wg0' }]
    assert.deepEqual(networksOfHost(routes, []), ['8.1.0.0/24', '9.9.9.9/32'])
    assert.deepEqual(networksOfHost([wayOut], []), ['8.1.0.1/32'])
  })

  test('all gateways of a multipath route are closed to sandboxes, also gateways in the route’s `via` fields', () => {
    const hops = [
      { gateway: '8.1.0.1', dev: 'eth0' },
      { via: { host: '8.2.0.1' }, dev: 'eth1' },
    ]
    assert.deepEqual(networksOfHost([{ dst: 'default', nexthops: hops }], []), ['8.1.0.1/32', '8.2.0.1/32'])
  })

  test('sandboxes may reach addresses behind the host’s default routes, and routes to half of all addresses', () => {
    const halves = ['0.0.0.0/1', '128.0.0.0/1'].map((dst) => ({ dst, dev: 'tun0' }))
    const viaWayOut = { dst: '9.0.0.0/8', gateway: '8.1.0.1', dev: 'eth0' }
    assert.deepEqual(networksOfHost([wayOut, viaWayOut, { dst: 'default', dev: 'ppp0' }, ...halves], []), [
      '8.1.0.1/32',
    ])
  })

  test('networks behind a device without a default route are closed to sandboxes', () => {
    const routes = [wayOut, { dst: '9.1.0.0/16', gateway: '10.8.0.1', dev: 'tun0' }]
    assert.deepEqual(networksOfHost(routes, []), ['10.8.0.1/32', '8.1.0.1/32', '9.1.0.0/16'])
  })

  test('sandboxes cannot reach either end of a host’s point-to-point link, or a host network without a route', () => {
    const addresses = [
      { ifname: 'eth0', addr_info: [{ local: '8.1.0.7', prefixlen: 24 }] },
      { ifname: 'ppp0', addr_info: [{ local: '8.3.0.2', address: '8.3.0.1', prefixlen: 32 }] },
    ]
    assert.deepEqual(networksOfHost([], addresses), ['8.1.0.0/24', '8.3.0.1/32', '8.3.0.2/32'])
  })

  test('`networksOfHost` leaves out routes to sandboxes, blackhole routes and local routes', () => {
    const routes = [
      { dst: '10.0.16.2', dev: 'alab12cd7' },
      { dst: '10.0.16.0/20', type: 'blackhole' },
      { dst: '8.1.0.7', type: 'local', dev: 'eth0' },
    ]
    assert.deepEqual(networksOfHost(routes, []), [])
  })
})
