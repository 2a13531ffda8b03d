import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { previewTemplate, previewUrl } from './preview-template.ts'

suite('the URL of a preview', () => {
  test('a preview’s host name is a subdomain of the gate’s host name', () => {
    assert.equal(previewUrl('https://proxy.example', 'box', 3000), 'https://3000-box.proxy.example')
    assert.equal(previewUrl('http://proxy.example:4601', 'box', 3000), 'http://3000-box.proxy.example:4601')
  })

  test('a preview’s host name is a subdomain of localhost if only this machine can reach the gate', () => {
    assert.equal(previewTemplate('http://127.0.0.1:4601'), 'http://{{PORT}}-{{sandboxId}}.localhost:4601')
    assert.equal(previewTemplate('http://localhost:4601'), 'http://{{PORT}}-{{sandboxId}}.localhost:4601')
  })

  test('if a gate has only an IP address, the URL of a preview names the sandbox in its path', () => {
    assert.equal(previewUrl('http://203.0.113.5:4601', 'box', 3000), 'http://203.0.113.5:4601/preview/box/3000')
    assert.equal(previewUrl('http://[2001:db8::1]:4601', 'box', 3000), 'http://[2001:db8::1]:4601/preview/box/3000')
  })

  test('for every kind of gate address, a preview has a valid URL', () => {
    for (const host of ['127.0.0.1:1', '10.0.0.1:1', '[::1]:1', '[::1]', 'a.b', 'localhost']) {
      assert.ok(URL.canParse(previewUrl(`http://${host}`, '0b5e', 80)), host)
    }
  })
})
