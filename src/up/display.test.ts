import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'

suite('the output of up for people', () => {
  test('output to a full disk does not end the supervisor', () => {
    const script = `
      const { createDisplay } = await import(${JSON.stringify(join(import.meta.dirname, 'display.ts'))})
      createDisplay().say('postgres ended')
      process.stdout.write('Alcove is ready')
      setTimeout(() => process.exit(7), 50)`
    const full = openSync('/dev/full', 'w')
    const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', full, full],
    })
    closeSync(full)
    assert.equal(status, 7)
  })
})
