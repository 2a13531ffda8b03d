import assert from 'node:assert/strict'
import { test } from 'node:test'
import { webAddress } from './web-address.ts'

test('`webAddress` returns an http or https address in the form in which the browser opens it', () => {
  assert.equal(webAddress('https://example.com/a b')?.href, 'https://example.com/a%20b')
  assert.equal(webAddress('http://127.0.0.1:3000')?.href, 'http://127.0.0.1:3000/')
  assert.equal(webAddress('https://аpple.com')?.hostname, 'xn--pple-43d.com')
})

test('`webAddress` returns undefined for schemes other than http and https, and for URLs with a user name', () => {
  for (const link of [
    'javascript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'vscode://x',
    'https://bank.example@evil.example/',
    'no address',
    `https://example.com/${'x'.repeat(3000)}`,
  ])
    assert.equal(webAddress(link), undefined, link)
})
