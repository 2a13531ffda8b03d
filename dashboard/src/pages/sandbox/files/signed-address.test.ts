import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { signedAddress } from './signed-address.ts'

test('`signedAddress` signs the unencoded path, and puts the encoded path into the address', () => {
  const path = '/home/a b&c/ü+.txt'
  const url = new URL(signedAddress('http://gate/toolbox/id', 'key', path, 1_800_000_000))
  const mac = createHmac('sha256', 'key').update(`v1:files:GET:${path}:1800000000`).digest('base64url')
  assert.equal(url.pathname, '/toolbox/id/files/download')
  assert.equal(url.searchParams.get('path'), path)
  assert.equal(url.searchParams.get('expires'), '1800000000')
  assert.equal(url.searchParams.get('signature'), `v1_${mac}`)
})
