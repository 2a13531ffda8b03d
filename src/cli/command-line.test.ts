// What is typed reaches the command that it is for.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { suite, test } from 'node:test'

const program = resolve(import.meta.dirname, '../../bin/alcove.ts')
const said = (...words: string[]) => {
  const { status, stderr } = spawnSync(process.execPath, [program, ...words], { encoding: 'utf8', timeout: 60_000 })
  return [status, stderr.trim().split('\n').at(-1)]
}

suite('the command line', () => {
  test('--data after a subcommand of a subcommand is its own', () => {
    for (const words of [
      ['runner', 'list'],
      ['runner', 'drain', 'second'],
      ['user', 'add', 'ada@example.com'],
    ])
      assert.deepEqual(said(...words, '--data', '/nowhere'), [1, 'alcove: no server runs in /nowhere'])
  })
})
