// A storage pool that a test can fill to the last byte within seconds.
import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { markAsOurs } from '#src/up/data-directory.ts'

/** For the default image, its sandboxes, and little else. */
const poolBytes = 1536 * 1024 ** 2

/** In a data directory that nothing serves yet: the runner takes the pool that it finds. */
export const prepareSmallPool = (directory: string): void => {
  const runner = join(directory, 'runner')
  mkdirSync(runner, { recursive: true })
  markAsOurs(directory)
  const image = join(runner, 'pool.img')
  closeSync(openSync(image, 'w', 0o600))
  truncateSync(image, poolBytes)
  // Mixed: contents and records share their room, so that what fills one fills the other.
  execFileSync('mkfs.btrfs', ['--quiet', '--mixed', '--data', 'single', '--metadata', 'single', image])
}

const MiB = 1024 ** 2

/** Answers false when there is no room for it. What is only set aside takes no time. */
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

/** Nothing fits afterwards. What was set aside for writing turns out to be more than that took, so more than one round. */
export const fillPool = (directory: string): void => {
  const pool = join(directory, 'runner/pool')
  // What was deleted a moment ago would make room again behind our back.
  execFileSync('btrfs', ['subvolume', 'sync', pool])
  const ballast = join(pool, 'ballast')
  mkdirSync(ballast, { recursive: true })
  for (const round of [1, 2, 3, 4]) {
    for (const bytes of [64 * MiB, 8 * MiB, MiB, 64 * 1024, 1024, 0]) {
      const take = bytes < MiB ? write : setAside
      for (let n = 0; take(join(ballast, `${round}-${bytes}-${n}`), bytes); n++);
    }
    execFileSync('sync', ['--file-system', ballast])
  }
}

export const emptyPool = (directory: string): void => {
  const pool = join(directory, 'runner/pool')
  rmSync(join(pool, 'ballast'), { recursive: true, force: true })
  execFileSync('sync', ['--file-system', pool])
}
