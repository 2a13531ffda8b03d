// A small storage pool that a test can fill completely within seconds.
import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { markAsOurs } from '#src/up/data-directory.ts'

/** Size of the pool: just enough for the default image and a few sandboxes. */
const poolBytes = 1536 * 1024 ** 2

/** Makes the small pool before the runner starts, because a runner uses a pool that exists already. */
export const prepareSmallPool = (directory: string): void => {
  const runner = join(directory, 'runner')
  mkdirSync(runner, { recursive: true })
  markAsOurs(directory)
  const image = join(runner, 'pool.img')
  closeSync(openSync(image, 'w', 0o600))
  truncateSync(image, poolBytes)
  // With `--mixed`, data and metadata share the space of the disk. So when files fill the pool, btrfs cannot write metadata either.
  execFileSync('mkfs.btrfs', ['--quiet', '--mixed', '--data', 'single', '--metadata', 'single', image])
}

const MiB = 1024 ** 2

/** Reserves disk space for a file quickly, without writing data. Returns false if there is too little space. */
const setAside = (path: string, bytes: number) =>
  spawnSync('fallocate', ['--length', String(bytes), path], { stdio: 'ignore' }).status === 0

const write = (path: string, bytes: number) => {
  try {
    writeFileSync(path, Buffer.alloc(bytes, 1))
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOSPC') return false
    throw error
  }
}

/** Fills the pool completely, in several rounds: btrfs reserves more space for a file than the file uses afterwards. */
export const fillPool = (directory: string): void => {
  const pool = join(directory, 'runner/pool')
  // Wait until btrfs has freed the space of deleted disks. If btrfs freed space later, the pool would not stay full.
  execFileSync('btrfs', ['subvolume', 'sync', pool])
  const filler = join(pool, 'ballast')
  mkdirSync(filler, { recursive: true })
  for (const round of [1, 2, 3, 4]) {
    for (const bytes of [64 * MiB, 8 * MiB, MiB, 64 * 1024, 1024, 0]) {
      const take = bytes < MiB ? write : setAside
      for (let n = 0; take(join(filler, `${round}-${bytes}-${n}`), bytes); n++);
    }
    execFileSync('sync', ['--file-system', filler])
  }
}

export const emptyPool = (directory: string): void => {
  const pool = join(directory, 'runner/pool')
  rmSync(join(pool, 'ballast'), { recursive: true, force: true })
  execFileSync('sync', ['--file-system', pool])
}
