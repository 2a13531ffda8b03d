import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { identityOf, waitUntilGone } from '#src/kit/process-identity.ts'

const root = resolve(import.meta.dirname, '..')

const readProc = (pid: number, path: string) => {
  try {
    return readFileSync(`/proc/${pid}/${path}`, 'utf8')
  } catch {
    // The process with this pid has ended, so its files in /proc are gone.
    return ''
  }
}

const descendantsOf = (pid: number): number[] => {
  const children = readProc(pid, `task/${pid}/children`).split(' ').filter(Boolean).map(Number)
  return children.flatMap((child) => [child, ...descendantsOf(child)])
}

const commandLineOf = (pid: number) => readProc(pid, 'cmdline').replaceAll('\0', ' ')

suite('alcove test', () => {
  test('`alcove test` starts and builds no program for a test file that needs none', () => {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const said = spawnSync(process.execPath, [join(root, 'scripts/test.ts'), 'src/kit/budget.test.ts'], {
      encoding: 'utf8',
      env: { ...env, PATH: '/nonexistent' },
      timeout: 60_000,
    })
    assert.match(said.stdout, /^ok {3}src\/kit\/budget\.test\.ts .*\n\n\d+ passed, 0 failed\n$/, said.stderr)
    assert.equal(said.status, 0)
  })

  test('SIGTERM to `alcove test` ends its running tests, and the servers that these tests use', async () => {
    const { NODE_TEST_CONTEXT: _, ALCOVE_TEST_DATABASE_URL: __, ...env } = process.env
    const words = [join(root, 'scripts/test.ts'), 'src/control/webhooks/kills.test.ts']
    const command = spawn(process.execPath, words, { env, stdio: 'ignore' })
    const ended = once(command, 'exit')
    const started = (name: RegExp) => descendantsOf(command.pid!).filter((pid) => name.test(commandLineOf(pid)))
    while (started(/--test-reporter/).length === 0 || started(/postgres/).length === 0) {
      assert.equal(command.exitCode, null)
      await pause(20)
    }
    const all = descendantsOf(command.pid!).map(identityOf)
    command.kill('SIGTERM')
    assert.deepEqual(await ended, [1, null])
    for (const each of all) assert.ok(await waitUntilGone(each, 20_000), commandLineOf(each.pid))
  })

  test('`alcove test` fails with a message if no test file has a path that was asked for', () => {
    const words = [join(import.meta.dirname, 'test.ts'), 'nosuchfile']
    const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8', timeout: 60_000 })
    assert.deepEqual([status, stdout, stderr], [1, '', 'no test file has "nosuchfile" in its path\n'])
  })
})
