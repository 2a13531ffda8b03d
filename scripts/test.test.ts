import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join, resolve } from 'node:path'
import { suite, test } from 'node:test'

const root = resolve(import.meta.dirname, '..')

suite('alcove test', () => {
  test('alcove test passes for pure code on a system without other programs: it searches and builds nothing', () => {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const said = spawnSync(process.execPath, [join(root, 'scripts/test.ts'), 'src/kit/budget.test.ts'], {
      encoding: 'utf8',
      env: { ...env, PATH: '/nonexistent' },
      timeout: 60_000,
    })
    assert.match(said.stdout, /^ok {3}src\/kit\/budget\.test\.ts .*\n\n\d+ passed, 0 failed\n$/, said.stderr)
    assert.equal(said.status, 0)
  })

  test('alcove test fails with a message if no test file matches', () => {
    const words = [join(import.meta.dirname, 'test.ts'), 'nosuchfile']
    const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8', timeout: 60_000 })
    assert.deepEqual([status, stdout, stderr], [1, '', 'no test file has "nosuchfile" in its path\n'])
  })
})
