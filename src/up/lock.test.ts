import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { takeLock } from './lock.ts'

suite('the lock of a data directory', () => {
  const directory = mkdtempSync(join(tmpdir(), 'alcove-lock-'))
  after(() => rmSync(directory, { recursive: true, force: true }))

  test('is refused while another process holds it, and free as soon as that one is killed', async () => {
    const path = join(directory, 'up.lock')
    const script = `const { takeLock } = await import(${JSON.stringify(join(import.meta.dirname, 'lock.ts'))})
      console.log(takeLock(${JSON.stringify(path)}))
      setInterval(() => {}, 1000)`
    const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      const [said] = (await once(holder.stdout, 'data')) as [Buffer]
      assert.equal(said.toString().trim(), 'true')
      assert.equal(takeLock(path), false)
    } finally {
      holder.kill('SIGKILL')
      await once(holder, 'exit')
    }
    assert.equal(takeLock(path), true)
  })
})
