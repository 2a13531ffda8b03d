import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSshUrl } from './ssh-url.ts'

test('`readSshUrl` returns the host and the port of an SSH URL; the default port is 22', () => {
  assert.deepEqual(readSshUrl('ssh://box.example:2222'), { host: 'box.example', port: 2222 })
  assert.deepEqual(readSshUrl('ssh://box.example/'), { host: 'box.example', port: 22 })
  assert.deepEqual(readSshUrl('ssh://[2001:db8::1]:2222'), { host: '2001:db8::1', port: 2222 })
})

test('`readSshUrl` returns undefined for another scheme, a user name, a path, a wrong port or other text', () => {
  const wrong = ['', 'box', 'http://box', 'ssh://', 'ssh://u@box', 'ssh://box/x', 'ssh://box:0', 'ssh://box:65536']
  for (const text of [...wrong, 'ssh://-oProxyCommand=x', 'ssh://a b', 'ssh://box:22 -x']) {
    assert.equal(readSshUrl(text), undefined, text)
  }
})
