import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { nameServersIn, resolversForSandboxes } from './resolvers.ts'

const host = (files: Record<string, string>) => (path: string) => files[path] ?? ''

suite('the DNS resolvers that sandboxes use', () => {
  test('sandboxes use the host’s own resolvers if these can be reached from sandboxes', () => {
    assert.deepEqual(
      resolversForSandboxes(host({ '/etc/resolv.conf': '# x\nnameserver 10.0.0.2\nnameserver 9.9.9.9\n' })),
      ['10.0.0.2', '9.9.9.9'],
    )
  })

  test('if the host’s resolver is on loopback, sandboxes use the resolvers that the host’s resolver asks', () => {
    const files = {
      '/etc/resolv.conf': 'nameserver 127.0.0.53\n',
      '/run/systemd/resolve/resolv.conf': 'nameserver 192.168.1.1\n',
    }
    assert.deepEqual(resolversForSandboxes(host(files)), ['192.168.1.1'])
  })

  test('sandboxes use public resolvers if they cannot reach any resolver of the host', () => {
    assert.deepEqual(resolversForSandboxes(host({})), ['1.1.1.1', '8.8.8.8'])
    assert.deepEqual(resolversForSandboxes(host({ '/etc/resolv.conf': 'nameserver 169.254.169.254\n' })), [
      '1.1.1.1',
      '8.8.8.8',
    ])
  })

  test('sandboxes use at most three resolvers of the host, and no loopback, link-local or IPv6 address', () => {
    const text = [
      '::1',
      'fe80::1%eth0',
      '127.0.0.1',
      '0.0.0.0',
      '999.1.1.1',
      '1.2.3.4/8',
      '1.1.1.1',
      '2.2.2.2',
      '3.3.3.3',
      '4.4.4.4',
    ]
      .map((address) => `nameserver ${address}`)
      .join('\n')
    assert.deepEqual(nameServersIn(text), ['1.1.1.1', '2.2.2.2', '3.3.3.3'])
    assert.deepEqual(nameServersIn('#nameserver 1.1.1.1\nsearch x\nnameserver\n'), [])
  })
})
