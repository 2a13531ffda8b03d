import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSshUrl } from './ssh-url.ts'

test('an SSH URL has a host and perhaps a port; the default port is 22', () => {
  assert.deepEqual(readSshUrl('ssh://box.example:2222'), { host: 'box.example', port: 2222 })
  assert.deepEqual(readSshUrl('ssh://box.example/'), { host: 'box.example', port: 22 })
  assert.deepEqual(readSshUrl('ssh://[2001:db8::1]:2222'), { host: '2001:db8::1', port: 2222 })
})

test('undefined for anything else, such as another scheme, a user, a path or a port that cannot be', () => {
  const wrong = ['', 'box', 'http://box', 'ssh://', 'ssh://u@box', 'ssh://box/x', 'ssh://box:0', 'ssh://box:65536']
  for (const text of [...wrong, 'ssh://-oProxyCommand=x', 'ssh://a b', 'ssh://box:22 -x']) {
    assert.equal(readSshUrl(text), undefined, text)
  }
})
