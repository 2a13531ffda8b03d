import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { addressesOf } from './address.ts'

suite('addresses', () => {
  test('on one host everything is that host, the proxy one port above', () => {
    assert.deepEqual(addressesOf('127.0.0.1', 4600), {
      control: '127.0.0.1:4600',
      proxy: '127.0.0.1:4601',
      controlUrl: 'http://127.0.0.1:4600',
      publicUrl: 'http://127.0.0.1:4600',
      publicProxyUrl: 'http://127.0.0.1:4601',
    })
  })

  test('listening everywhere, our own programs stay on loopback and clients are told the public name', () => {
    const { control, controlUrl, publicUrl, publicProxyUrl } = addressesOf('0.0.0.0', 80, 'box.example')
    assert.deepEqual(
      [control, controlUrl, publicUrl, publicProxyUrl],
      ['0.0.0.0:80', 'http://127.0.0.1:80', 'http://box.example:80', 'http://box.example:81'],
    )
  })

  test('IPv6 addresses are bracketed', () => {
    assert.equal(addressesOf('::', 4600, '2001:db8::1').publicUrl, 'http://[2001:db8::1]:4600')
    assert.equal(addressesOf('::', 4600, 'x').control, '[::]:4600')
  })
})
