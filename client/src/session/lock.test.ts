import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { waitForLock } from './lock.ts'

/** A process id that no process has: Linux and macOS use smaller numbers only. */
const noPid = 2 ** 30

suite('the lock of a session', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-lock-'))
  after(() => rmSync(scratch, { recursive: true, force: true }))

  test('only one process at a time has a lock, and each waiting process gets it in the end', async () => {
    const path = join(scratch, 'shared')
    let holders = 0
    let most = 0
    const hold = async () => {
      using _lock = await waitForLock(path, 30_000)
      holders += 1
      most = Math.max(most, holders)
      await new Promise(setImmediate)
      holders -= 1
    }
    await Promise.all(Array.from({ length: 5 }, hold))
    assert.deepEqual([most, holders, existsSync(path)], [1, 0, false])
  })

  test('if the process that had a lock has ended, the next process gets the lock immediately', async () => {
    const path = join(scratch, 'ended')
    writeFileSync(path, `${noPid} ${hostname()} x`)
    using _lock = await waitForLock(path, 1000)
    assert.ok(existsSync(path))
  })

  test('a process waits for a lock that another machine holds, and takes it over when the lock is old', async () => {
    const path = join(scratch, 'elsewhere')
    writeFileSync(path, `${noPid} another-host x`)
    await assert.rejects(waitForLock(path, 200), /waited 0\.2 s/)
    const old = Date.now() / 1000 - 3600
    utimesSync(path, old, old)
    using _lock = await waitForLock(path, 1000)
    assert.ok(existsSync(path))
  })

  test('a process that has lost its lock does not remove the lock of the next process', async () => {
    const path = join(scratch, 'lost')
    const lock = await waitForLock(path, 1000)
    writeFileSync(path, 'the next holder')
    lock[Symbol.dispose]()
    assert.ok(existsSync(path))
  })

  test('`waitForLock` fails without waiting if the directory of the lock file does not exist', async () => {
    await assert.rejects(waitForLock(join(scratch, 'none/lock'), 60_000), /ENOENT/)
  })
})
