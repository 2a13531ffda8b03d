import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { takeLock } from './lock.ts'

suite('the lock between processes', () => {
  let path: string
  before(async () => {
    path = join(await mkdtemp(join(tmpdir(), 'alcove-lock-')), 'lock')
  })
  after(() => rm(join(path, '..'), { recursive: true, force: true }))

  test('one holder at a time; the next one is told that it waits', async () => {
    const first = await takeLock(path, { onWait: assert.fail, timeoutMs: 60_000 })
    const order: string[] = []
    const waits = Promise.withResolvers<void>()
    const second = takeLock(path, { onWait: waits.resolve, timeoutMs: 60_000 }).then((lock) => {
      order.push('second')
      return lock
    })
    await waits.promise
    order.push('first ends')
    await first[Symbol.asyncDispose]()
    await (await second)[Symbol.asyncDispose]()
    assert.deepEqual(order, ['first ends', 'second'])
  })

  test('a holder that is killed gives it back', async () => {
    const program =
      `import { takeLock } from ${JSON.stringify(import.meta.resolve('./lock.ts'))}\n` +
      `await takeLock(${JSON.stringify(path)}, { onWait() {}, timeoutMs: 60_000 })\n` +
      `console.log('held'); setInterval(() => {}, 1000)`
    const holder = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await new Promise((resolve) => holder.stdout.once('data', resolve))
    const waits = Promise.withResolvers<void>()
    const next = takeLock(path, { onWait: waits.resolve, timeoutMs: 60_000 })
    await waits.promise
    holder.kill('SIGKILL')
    await (await next)[Symbol.asyncDispose]()
  })

  test('waiting has an end', async () => {
    const held = await takeLock(path, { onWait: assert.fail, timeoutMs: 60_000 })
    await assert.rejects(takeLock(path, { onWait() {}, timeoutMs: 1000 }), /waited 1 s/)
    await held[Symbol.asyncDispose]()
  })

  test('a path that cannot be opened is an error', async () => {
    await assert.rejects(takeLock('/proc/no/such/lock', { onWait() {}, timeoutMs: 1000 }), /no lock/)
  })
})
