import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isOtherLoopback } from './other-loopback.ts'

test('`isOtherLoopback` is true only for a loopback name other than the public URL’s, at the same port', () => {
  const local = 'http://127.0.0.1:4600'
  for (const host of ['localhost:4600', '[::1]:4600', 'LOCALHOST:4600'])
    assert.equal(isOtherLoopback(host, local), true)
  for (const host of [
    '127.0.0.1:4600',
    'localhost:4601',
    'localhost',
    '10.0.0.5:4600',
    'localhost.evil.example:4600',
    'evil.example@localhost.:4600',
    'local host',
    '',
    undefined,
  ])
    assert.equal(isOtherLoopback(host, local), false, String(host))
  // With https, the result is false, because the name may be from a reverse proxy and not from the browser.
  assert.equal(isOtherLoopback('127.0.0.1:4600', 'https://localhost:4600'), false)
  assert.equal(isOtherLoopback('127.0.0.1:4600', 'https://alcove.example'), false)
  assert.equal(isOtherLoopback('127.0.0.1', 'http://localhost'), true)
})
