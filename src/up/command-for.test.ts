import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { suite, test } from 'node:test'
import { commandFor, loginCommand } from './command-for.ts'

suite('a command in a message', () => {
  const launcher = resolve(import.meta.dirname, '../../alcove')

  test('it names the launcher and the data directory by whole paths, so that it works in any directory', () => {
    assert.equal(commandFor('images renew', '/srv/alcove'), `${launcher} images renew --data /srv/alcove`)
    assert.equal(commandFor('key', 'here'), `${launcher} key --data ${resolve('here')}`)
  })

  test('a shell reads a directory with spaces and quotes as one word', () => {
    assert.equal(commandFor('key', "/srv/Ann's disk"), `${launcher} key --data '/srv/Ann'\\''s disk'`)
  })

  test('signing in again names the server, because the default is another one', () => {
    assert.equal(loginCommand('https://sandboxes.example/api'), `${launcher} login --url https://sandboxes.example/api`)
  })
})
