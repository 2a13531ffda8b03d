// What is typed reaches the command that it is for.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, suite, test } from 'node:test'

const scratch = mkdtempSync(join(tmpdir(), 'alcove-cli-'))
after(() => rmSync(scratch, { recursive: true, force: true }))
const program = resolve(import.meta.dirname, '../../bin/alcove.ts')
/** In an empty directory, should a command make something of it after all. */
const run = (...words: string[]) =>
  spawnSync(process.execPath, [program, ...words], { encoding: 'utf8', timeout: 60_000, cwd: scratch })
const said = (...words: string[]) => {
  const { status, stderr } = run(...words)
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

  test('an empty --data is refused by every command, since it would mean the working directory', () => {
    for (const words of [['status'], ['purge', '--yes'], ['up']]) {
      const { status, stderr } = run(...words, '--data', '')
      assert.equal(status, 1)
      assert.match(stderr, /'--data <dir>' argument '' is invalid\. it must not be empty/)
    }
  })
})
