import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { addressesOf } from './address.ts'
import { Complaint } from './complaint.ts'

suite('the addresses of a server', () => {
  test('all addresses of a server use the given host, and the gate’s port is control’s port plus 1', () => {
    assert.deepEqual(addressesOf('127.0.0.1', 4600), {
      control: '127.0.0.1:4600',
      gate: '127.0.0.1:4601',
      controlUrl: 'http://127.0.0.1:4600',
      gateUrl: 'http://127.0.0.1:4601',
      publicUrl: 'http://127.0.0.1:4600',
      publicProxyUrl: 'http://127.0.0.1:4601',
      ssh: { listen: { host: '127.0.0.1', port: 4602 }, publicUrl: 'ssh://127.0.0.1:4602' },
    })
  })

  test('if a server listens on 0.0.0.0, its programs connect by loopback, and clients use its public name', () => {
    const { control, controlUrl, publicUrl, publicProxyUrl } = addressesOf('0.0.0.0', 80, 'box.example')
    assert.deepEqual(
      [control, controlUrl, publicUrl, publicProxyUrl],
      ['0.0.0.0:80', 'http://127.0.0.1:80', 'http://box.example:80', 'http://box.example:81'],
    )
  })

  test('behind a reverse proxy, clients use the proxy’s URLs, and programs listen on their usual addresses', () => {
    const urls = { publicUrl: 'https://box.example', publicProxyUrl: 'https://sandboxes.example:8443' }
    assert.deepEqual(addressesOf('127.0.0.1', 4600, 'other.example', urls), {
      control: '127.0.0.1:4600',
      gate: '127.0.0.1:4601',
      controlUrl: 'http://127.0.0.1:4600',
      gateUrl: 'http://127.0.0.1:4601',
      publicUrl: 'https://box.example',
      publicProxyUrl: 'https://sandboxes.example:8443',
      ssh: { listen: { host: '127.0.0.1', port: 4602 }, publicUrl: 'ssh://box.example:4602' },
    })
  })

  test('the SSH gateway listens at the configured address, and clients reach it at its public address', () => {
    const sshOf = (settings: Parameters<typeof addressesOf>[4]) =>
      addressesOf('0.0.0.0', 4600, 'box.example', undefined, settings).ssh
    assert.deepEqual(sshOf({}), { listen: { host: '0.0.0.0', port: 4602 }, publicUrl: 'ssh://box.example:4602' })
    const listen = { host: '127.0.0.1', port: 2222 }
    assert.deepEqual(sshOf({ listen }), { listen, publicUrl: 'ssh://box.example:2222' })
    assert.deepEqual(sshOf({ listen, publicUrl: 'ssh://ssh.example' }), { listen, publicUrl: 'ssh://ssh.example' })
    assert.equal(sshOf({ listen: 'off' }), undefined)
  })

  test('with --hosts ADDRESS, control listens at ADDRESS on --port plus 3, and the gate on --port plus 4', () => {
    const hostsOf = (address: string) => addressesOf('127.0.0.1', 4600, undefined, undefined, {}, address).hosts
    assert.deepEqual(hostsOf('10.0.0.7'), { control: '10.0.0.7:4603', gate: '10.0.0.7:4604' })
    assert.deepEqual(hostsOf('2001:db8::1'), { control: '[2001:db8::1]:4603', gate: '[2001:db8::1]:4604' })
    for (const everywhere of ['0.0.0.0', '::', 'a b']) assert.throws(() => hostsOf(everywhere), /^Complaint: --hosts/)
    assert.equal(addressesOf('127.0.0.1', 4600).hosts, undefined)
  })

  test('in a URL, an IPv6 address is written in brackets', () => {
    assert.equal(addressesOf('::', 4600, '2001:db8::1').publicUrl, 'http://[2001:db8::1]:4600')
    assert.equal(addressesOf('::', 4600, 'x').control, '[::]:4600')
  })

  test('`addressesOf` refuses a text that is not a host name or IP address', () => {
    for (const host of ['', ' ', 'a b', 'box:80', 'http://box', '[::1]', 'fe80::1%eth0', 'a/b', 'a@b', '1.2.3.999']) {
      assert.throws(() => addressesOf(host, 4600), Complaint, host)
      assert.throws(() => addressesOf('127.0.0.1', 4600, host), /^Complaint: --public-host/, host)
    }
    for (const host of ['localhost', 'my_box', 'box.example.', '10.0.0.1', '::1']) addressesOf(host, 4600, host)
  })
})
