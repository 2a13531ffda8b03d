// For tests: brings a pool in an image file into the state in which a power cut would leave the pool.
import { execFileSync } from 'node:child_process'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { unmountPool } from '../overlay/pool.ts'

/** Replaces the pool's image file by what the kernel has written so far. `end` must end all processes that use the pool. */
export const cutPower = async (directory: string, end: () => Promise<void>): Promise<void> => {
  const image = join(directory, 'pool.img')
  const left = `${image}.left`
  execFileSync('cp', ['--sparse=always', image, left])
  await end()
  await unmountPool(directory)
  renameSync(left, image)
}
