// Tests a real pool in a btrfs image file, and its fallback without btrfs. Skipped without root.
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { after, before, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { GiB } from '#src/runner/cgroup/sandbox-limits.ts'
import { needsRoot } from '#test/needs-root.ts'
import { runSteps } from '../launch.ts'
import { uidBase } from '../oci/ids.ts'
import { builtLauncher } from '../testing/test-host.ts'
import { openStoragePool, type PoolParts, type StoragePool, unmountPool } from './pool.ts'

for (const useBtrfs of [true, false])
  suite(`a storage pool ${useBtrfs ? 'on btrfs' : 'of plain directories'}`, { skip: needsRoot }, () => {
    let parts: PoolParts
    let pool: StoragePool
    const make = (id: string) =>
      runSteps(parts.launcher, [...pool.stepsToMake(id, 'base'), ...pool.stepsToLimit(id, 1)])

    before(async () => {
      const directory = mkdtempSync(join(tmpdir(), 'alcove-pool-'))
      parts = { directory, launcher: builtLauncher(), log: silentLog(), useBtrfs, imageBytes: GiB }
      pool = await openStoragePool(parts)
    })
    after(async () => {
      await pool.close()
      await unmountPool(parts.directory)
      rmSync(parts.directory, { recursive: true, force: true })
    })

    test('a runner’s pool reports its size, and whether disk limits are enforced (only on btrfs)', () => {
      assert.equal(pool.hardDiskLimit, useBtrfs)
      assert.ok(pool.sizeGiB >= 1)
    })

    test('a new disk belongs to root of the sandbox; `stepsToMake` does not change a disk that exists', async () => {
      await make('a')
      writeFileSync(join(pool.diskOf('a').upper, 'file'), 'x')
      await make('a')
      assert.equal(statSync(pool.diskOf('a').upper).uid, uidBase)
      assert.equal(statSync(pool.diskOf('a').work).uid, 0)
      assert.ok(existsSync(join(pool.diskOf('a').upper, 'file')))
      assert.equal(await pool.exists('a'), true)
      assert.deepEqual(await pool.list(), ['a'])
    })

    test('only root can open the directory that contains the disks of sandboxes', () => {
      assert.equal(statSync(join(pool.diskOf('a').upper, '../..')).mode & 0o077, 0)
    })

    test('a copied disk lacks only machine ids and random seeds; later changes do not affect the original', async () => {
      const { upper, etc, work } = pool.diskOf('a')
      mkdirSync(join(upper, 'var/lib/systemd'), { recursive: true })
      writeFileSync(join(upper, 'var/lib/systemd/random-seed'), 'secret')
      writeFileSync(join(etc, 'machine-id'), 'a')
      writeFileSync(join(work, 'left'), '')
      chmodSync(upper, 0o700)
      execFileSync('mknod', [join(upper, 'whiteout'), 'c', '0', '0'])
      await pool.copyDisk({ sandboxId: 'a' }, 'b', 'base', 1)
      const copy = pool.diskOf('b')
      assert.equal(readFileSync(join(copy.upper, 'file'), 'utf8'), 'x')
      assert.ok(statSync(join(copy.upper, 'whiteout')).isCharacterDevice())
      assert.equal(statSync(copy.upper).mode & 0o777, 0o700)
      assert.deepEqual(readdirSync(join(copy.upper, 'var/lib/systemd')), [])
      assert.deepEqual([readdirSync(copy.etc), readdirSync(copy.work)], [['image'], []])
      assert.equal(await pool.baseOf({ sandboxId: 'b' }), 'base')
      writeFileSync(join(copy.upper, 'file'), 'y')
      assert.equal(readFileSync(join(upper, 'file'), 'utf8'), 'x')
    })

    test('disks that are copied at the same time are complete; a failed copy does not affect the other copies', async () => {
      const ids = ['many-1', 'many-2', 'many-3', 'many-4']
      const parent = { sandboxId: 'a' }
      const making = ids.map((id) => pool.copyDisk(parent, id, `below ${id}`, 1))
      const failing = pool.copyDisk({ sandboxId: 'nobody' }, 'of-nobody', 'base', 1)
      await assert.rejects(failing)
      await Promise.all(making)
      await Promise.all(ids.map(() => pool.settleDisks()))
      for (const id of ids) {
        assert.equal(readFileSync(join(pool.diskOf(id).upper, 'file'), 'utf8'), 'x')
        assert.equal(await pool.baseOf({ sandboxId: id }), `below ${id}`)
        await pool.remove(id)
      }
      assert.deepEqual(
        (await pool.list()).filter((name) => name.includes('many') || name.includes('nobody')),
        [],
      )
    })

    test('`copyDisk` follows no symbolic link that leads out of the copied disk', async () => {
      await make('sly')
      const outside = mkdtempSync(join(tmpdir(), 'alcove-outside-'))
      try {
        mkdirSync(join(outside, 'systemd'))
        writeFileSync(join(outside, 'systemd/random-seed'), 'of the host')
        mkdirSync(join(pool.diskOf('sly').upper, 'var'))
        symlinkSync(outside, join(pool.diskOf('sly').upper, 'var/lib'))
        await pool.copyDisk({ sandboxId: 'sly' }, 'slyer', 'base', 1)
        assert.equal(readFileSync(join(outside, 'systemd/random-seed'), 'utf8'), 'of the host')
      } finally {
        rmSync(outside, { recursive: true, force: true })
      }
      for (const id of ['sly', 'slyer']) await pool.remove(id)
    })

    test('a template stays when the disk of its sandbox is removed; a restart removes unfinished templates', async () => {
      await pool.makeTemplate('tool', 'b', 'base')
      await pool.remove('b')
      const half = join(pool.diskOf('a').upper, '../../../templates/.coming-half')
      if (useBtrfs) execFileSync('btrfs', ['subvolume', 'create', half], { stdio: 'ignore' })
      else mkdirSync(half)
      await pool.close()
      pool = await openStoragePool(parts)
      assert.deepEqual(await pool.listTemplates(), ['tool'])
      assert.equal(await pool.baseOf({ template: 'tool' }), 'base')
      await pool.copyDisk({ template: 'tool' }, 'c', 'base', 1)
      assert.equal(readFileSync(join(pool.diskOf('c').upper, 'file'), 'utf8'), 'y')
      await pool.remove('c')
      await pool.removeTemplate('tool')
      await pool.removeTemplate('tool')
      assert.deepEqual(await pool.listTemplates(), [])
      assert.equal(await pool.baseOf({ template: 'tool' }), undefined)
      assert.equal(await pool.baseOf({ template: '../disks/a' }), undefined)
    })

    test('after a runner’s pool is closed and opened again, it still has all disks', async () => {
      await pool.close()
      pool = await openStoragePool(parts)
      assert.deepEqual(await pool.list(), ['a'])
    })

    if (useBtrfs)
      test('a restored disk may exceed its limit by 3 %; files can then be added only after others were removed', async () => {
        const small = 1 / 2
        await runSteps(parts.launcher, pool.stepsToMakeEmpty('restored', small))
        const path = join(pool.diskOf('restored').work, '..')
        execFileSync('fallocate', ['--length', String(Math.round(small * GiB * 1.03)), join(path, 'large')])
        execFileSync('sync', ['--file-system', path])
        await pool.limit('restored', small)
        assert.throws(() => writeFileSync(join(path, 'more'), Buffer.alloc(1_000_000)), /EDQUOT|-122/)
        rmSync(join(path, 'large'))
        execFileSync('sync', ['--file-system', path])
        writeFileSync(join(path, 'more'), 'x', { flush: true })
        await pool.remove('restored')
      })

    test('a disk can be removed even if it contains paths that are longer than the kernel’s maximum', async () => {
      await make('deep')
      const deep = `${'d'.repeat(199)}/`.repeat(20)
      const nest = `cd "$0" && mkdir -p ${deep} && cd ${deep} && mkdir -p ${deep}`
      execFileSync('sh', ['-c', nest, pool.diskOf('deep').upper])
      await pool.remove('deep')
      assert.deepEqual(await pool.list(), ['a'])
    })

    test('`remove` removes all files of a disk in the pool, and may be called again', async () => {
      await pool.remove('a')
      await pool.remove('a')
      assert.equal(await pool.exists('a'), false)
      assert.deepEqual(await pool.list(), [])
    })
  })

suite('the image file of a storage pool', { skip: needsRoot }, () => {
  test('if the pool’s file cannot be mounted, opening the pool fails, and no empty pool is made instead', async () => {
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

  test('if a runner was killed while it made the pool’s file, the next runner makes the file again', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'alcove-pool-'))
    try {
      writeFileSync(join(directory, 'pool.img.new'), 'half')
      const parts = { directory, launcher: builtLauncher(), log: silentLog(), imageBytes: GiB }
      const pool = await openStoragePool(parts)
      assert.equal(pool.hardDiskLimit, true)
      await pool.close()
    } finally {
      await unmountPool(directory)
      rmSync(directory, { recursive: true, force: true })
    }
  })

  test('if a pool was remounted read-only, a runner that opens the pool makes it writable again', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'alcove-pool-'))
    const parts = { directory, launcher: builtLauncher(), log: silentLog(), imageBytes: GiB }
    try {
      await (await openStoragePool(parts)).close()
      execFileSync('mount', ['-o', 'remount,ro', join(directory, 'pool')])
      const pool = await openStoragePool(parts)
      await runSteps(parts.launcher, pool.stepsToMake('a', 'base'))
      assert.deepEqual(await pool.list(), ['a'])
      await pool.close()
    } finally {
      await unmountPool(directory)
      rmSync(directory, { recursive: true, force: true })
    }
  })

  test('if a pool is read-only after a disk error, it cannot be opened, and the error says what to do', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'alcove-pool-'))
    const image = join(directory, 'pool.img')
    const place = join(directory, 'pool')
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=160m', 'tmpfs', directory])
    mkdirSync(place)
    let holder: ChildProcess | undefined
    try {
      execFileSync('truncate', ['--size', '512M', image])
      execFileSync('mkfs.btrfs', ['--quiet', '--data', 'single', '--metadata', 'single', image])
      execFileSync('mount', ['-o', 'loop', image, place])
      holder = spawn('unshare', ['--mount', 'sh', '-c', 'echo; exec sleep 100'], {
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      await once(holder.stdout as Readable, 'data')
      spawnSync('dd', ['if=/dev/zero', `of=${join(directory, 'other')}`, 'bs=1M'])
      writeFileSync(join(place, 'file'), '')
      spawnSync('sync', ['--file-system', place])
      rmSync(join(directory, 'other'))
      const parts = { directory, launcher: builtLauncher(), log: silentLog() }
      for (const _try of [1, 2])
        await assert.rejects(openStoragePool(parts), /restart this machine, or end all sandboxes/)
    } finally {
      if (holder?.kill('SIGKILL')) await once(holder, 'exit')
      await unmountPool(directory)
      execFileSync('umount', ['--lazy', directory])
      rmSync(directory, { recursive: true, force: true })
    }
  })
})
