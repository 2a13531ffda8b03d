import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { suite, test } from 'node:test'
import { commandFor } from './command-for.ts'

suite('a command that a message tells the user to run', () => {
  const launcher = resolve(import.meta.dirname, '../../alcove')

  test('`commandFor` returns a command with absolute paths, which works in any directory', () => {
    assert.equal(commandFor('images renew', '/srv/alcove'), `${launcher} images renew --data /srv/alcove`)
    assert.equal(commandFor('key', 'here'), `${launcher} key --data ${resolve('here')}`)
  })

  test('`commandFor` quotes a directory with spaces and quotes as one shell word', () => {
    assert.equal(commandFor('key', "/srv/Ann's disk"), `${launcher} key --data '/srv/Ann'\\''s disk'`)
  })
})
