// Tests a pool on a host whose own disk fills up. Skipped without root.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { freeBytes, isWritable } from '#src/kit/file-system.ts'
import { silentLog } from '#src/kit/log.ts'
import { needsRoot } from '#test/needs-root.ts'
import { SpaceClaim } from './space-claim.ts'

const MiB = 1024 ** 2

suite('`SpaceClaim` keeps a sparse pool from exceeding the host’s free space', { skip: needsRoot }, () => {
  let directory: string
  let place: string
  let spaceClaim: SpaceClaim
  const image = () => join(directory, 'pool.img')
  const bytes = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'alcove-ballast-'))
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=320m', 'tmpfs', directory])
    place = join(directory, 'pool')
    mkdirSync(place)
    execFileSync('truncate', ['--size', '512M', image()])
    execFileSync('mkfs.btrfs', ['--quiet', '--data', 'single', '--metadata', 'single', image()])
    execFileSync('mount', ['-o', 'loop,noatime', image(), place])
    // Fill the areas where btrfs stores names and small files, so that they are as full as in a used pool.
    for (let made = 0; made < 6000; made += 1) writeFileSync(join(place, `small-${made}`), 'x'.repeat(2000))
    execFileSync('sync', ['--file-system', place])
    spaceClaim = new SpaceClaim({ image: image(), place, log: silentLog(), keepFreeBytes: 64 * MiB })
  })
  afterEach(async () => {
    await spaceClaim.close()
    execFileSync('umount', [place])
    // The unmount is lazy: a starting sandbox of a different test may have a copy of the mount for a moment.
    execFileSync('umount', ['--lazy', directory])
    rmSync(directory, { recursive: true })
  })

  /** Writes to a file until the disk is full. Returns how many MiB were written. */
  const fill = (path: string): number => {
    const file = openSync(path, 'w')
    let written = 0
    try {
      for (; ; written += 1) {
        writeSync(file, Buffer.alloc(MiB, 1))
        fsyncSync(file)
      }
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
      return written
    } finally {
      closeSync(file)
    }
  }

  test('a pool larger than the host’s free space is full before the host is, and never becomes read-only', async () => {
    await spaceClaim.look()
    assert.ok(fill(join(place, 'much')) > 100)
    rmSync(join(place, 'much'))
    execFileSync('sync', ['--file-system', place])
    assert.equal(await isWritable(place), true)
    writeFileSync(join(place, 'small'), 'x', { flush: true })
  })

  test('if the host has less free space than `keepFreeBytes`, the pool can still be written to', async () => {
    execFileSync('fallocate', ['--length', String((await freeBytes(directory)) - 24 * MiB), join(directory, 'other')])
    await spaceClaim.look()
    assert.ok(fill(join(place, 'much')) > 0)
    execFileSync('sync', ['--file-system', place])
    assert.equal(await isWritable(place), true)
    rmSync(join(place, 'much'))
    writeFileSync(join(place, 'small'), 'x', { flush: true })
  })

  test('if the ballast file cannot be allocated in one piece, it is allocated in smaller pieces', async () => {
    const most = 200 * MiB
    for (const words of [
      ['quota', 'enable'],
      ['qgroup', 'limit', String(most), '0/5'],
    ])
      execFileSync('btrfs', [...words, place])
    execFileSync('fallocate', ['--length', '128M', join(directory, 'other')])
    await spaceClaim.look()
    const claimed = bytes(join(place, 'ballast'))
    assert.ok(claimed > 0 && claimed <= most, `${claimed}`)
  })

  test('the ballast file grows when the host’s free space shrinks, and shrinks when the free space grows', async () => {
    await spaceClaim.look()
    const atFirst = bytes(join(place, 'ballast'))
    execFileSync('fallocate', ['--length', '128M', join(directory, 'other')])
    await spaceClaim.look()
    assert.ok(bytes(join(place, 'ballast')) > atFirst)
    rmSync(join(directory, 'other'))
    await spaceClaim.look()
    const atLast = bytes(join(place, 'ballast'))
    assert.ok(atLast <= atFirst + 64 * MiB, `${atLast} after ${atFirst}`)
    await spaceClaim.look()
    assert.equal(bytes(join(place, 'ballast')), atLast)
  })
})
