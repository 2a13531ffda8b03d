import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { tryLock, waitForLock } from './lock.ts'

const directory = mkdtempSync(join(tmpdir(), 'alcove-lock-'))
const path = join(directory, 'lock')
after(() => rmSync(directory, { recursive: true, force: true }))

/** Starts another process, which takes the lock and holds it until it is killed. */
const startHolder = async () => {
  const script = `const { tryLock } = await import(${JSON.stringify(import.meta.resolve('./lock.ts'))})
    console.log(tryLock(${JSON.stringify(path)}) !== undefined)
    setInterval(() => {}, 1000)`
  const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = (await once(holder.stdout, 'data')) as [Buffer]
  assert.equal(said.toString().trim(), 'true')
  return {
    kill: async () => {
      holder.kill('SIGKILL')
      await once(holder, 'exit')
    },
  }
}

suite('a lock between processes', () => {
  test('`tryLock` fails while another process holds the lock, and succeeds after the holder was killed', async () => {
    const holder = await startHolder()
    try {
      assert.equal(tryLock(path), undefined)
    } finally {
      await holder.kill()
    }
    using lock = tryLock(path)
    assert.ok(lock)
  })

  test('`waitForLock` gives the lock to one caller at a time, and calls `onWait` for a caller that must wait', async () => {
    const first = await waitForLock(path, { onWait: assert.fail, timeoutMs: 60_000 })
    const order: string[] = []
    const waits = Promise.withResolvers<void>()
    const second = waitForLock(path, { onWait: waits.resolve, timeoutMs: 60_000 }).then((lock) => {
      order.push('second')
      return lock
    })
    await waits.promise
    order.push('first ends')
    first[Symbol.dispose]()
    using _second = await second
    assert.deepEqual(order, ['first ends', 'second'])
  })

  test('a caller that waits for the lock of a file gets the lock when the process that holds it is killed', async () => {
    const holder = await startHolder()
    const waits = Promise.withResolvers<void>()
    const next = waitForLock(path, { onWait: waits.resolve, timeoutMs: 60_000 })
    await waits.promise
    await holder.kill()
    using _next = await next
  })

  test('a caller that waits for the lock of a file gets an error if the lock is not free before the timeout', async () => {
    using _held = tryLock(path)
    await assert.rejects(waitForLock(path, { timeoutMs: 100 }), /waited 0.1 s/)
  })

  test('a caller that asks for the lock of a file gets an error if the file cannot be opened', async () => {
    await assert.rejects(waitForLock('/proc/no/such/lock', { timeoutMs: 1000 }), { code: 'ENOENT' })
    assert.throws(() => tryLock('/proc/no/such/lock'), { code: 'ENOENT' })
  })
})
