import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { suite, test } from 'node:test'

suite('alcove test', () => {
  test('fails, and says so, where no test file is meant: nothing that was tested is nothing that holds', () => {
    const words = [join(import.meta.dirname, 'test.ts'), 'nosuchfile']
    const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8', timeout: 60_000 })
    assert.deepEqual([status, stdout, stderr], [1, '', 'no test file has "nosuchfile" in its path\n'])
  })
})
