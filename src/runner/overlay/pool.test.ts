// A real pool on a real btrfs image, and the fallback without one. Needs root; elsewhere it is skipped and says so.
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { runSteps } from '../launch.ts'
import { GiB, uidBase } from '../oci/sandbox-limits.ts'
import { builtLauncher, cannotRun } from '../testing/test-host.ts'
import { openStoragePool, type PoolParts, type StoragePool, unmountPool } from './pool.ts'

for (const useBtrfs of [true, false])
  suite(`a storage pool ${useBtrfs ? 'on btrfs' : 'of plain directories'}`, { skip: cannotRun }, () => {
    let parts: PoolParts
    let pool: StoragePool
    const make = (id: string) => runSteps(parts.launcher, [...pool.stepsToMake(id), ...pool.stepsToLimit(id, 1)])

    before(async () => {
      const directory = mkdtempSync(join(tmpdir(), 'alcove-pool-'))
      parts = { directory, launcher: builtLauncher(), log: silentLog(), useBtrfs, imageBytes: GiB }
      pool = await openStoragePool(parts)
    })
    after(async () => {
      await unmountPool(parts.directory)
      rmSync(parts.directory, { recursive: true, force: true })
    })

    test('says whether a limit is hard, and how large it is', () => {
      assert.equal(pool.hardDiskLimit, useBtrfs)
      assert.ok(pool.sizeGiB >= 1)
    })

    test('a disk is the sandbox’s own on top and the host’s below; making it twice changes nothing', async () => {
      await make('a')
      writeFileSync(join(pool.diskOf('a').upper, 'file'), 'x')
      await make('a')
      assert.equal(statSync(pool.diskOf('a').upper).uid, uidBase)
      assert.equal(statSync(pool.diskOf('a').work).uid, 0)
      assert.ok(existsSync(join(pool.diskOf('a').upper, 'file')))
      assert.equal(await pool.exists('a'), true)
      assert.deepEqual(await pool.list(), ['a'])
    })

    test('nobody but root can walk to a disk', () => {
      assert.equal(statSync(join(pool.diskOf('a').upper, '../..')).mode & 0o077, 0)
    })

    test('opening again finds the same disks', async () => {
      pool = await openStoragePool(parts)
      assert.deepEqual(await pool.list(), ['a'])
    })

    test('remove leaves nothing, and may be asked twice', async () => {
      await pool.remove('a')
      await pool.remove('a')
      assert.equal(await pool.exists('a'), false)
      assert.deepEqual(await pool.list(), [])
    })
  })

suite('a pool’s image', { skip: cannotRun }, () => {
  test('one that cannot be mounted is an error, never an empty pool beside it', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'alcove-pool-'))
    try {
      writeFileSync(join(directory, 'pool.img'), 'no file system')
      const parts = { directory, launcher: builtLauncher(), log: silentLog() }
      await assert.rejects(openStoragePool(parts), /mount/)
      assert.equal(readdirSync(directory).includes('disks'), false)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })

  test('one that was half made when the runner was killed is made anew', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'alcove-pool-'))
    try {
      writeFileSync(join(directory, 'pool.img.new'), 'half')
      const parts = { directory, launcher: builtLauncher(), log: silentLog(), imageBytes: GiB }
      assert.equal((await openStoragePool(parts)).hardDiskLimit, true)
    } finally {
      await unmountPool(directory)
      rmSync(directory, { recursive: true, force: true })
    }
  })
})
