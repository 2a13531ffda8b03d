// For tests: what is left of a storage pool in an image when the machine loses its power.
import { execFileSync } from 'node:child_process'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { unmountPool } from '../overlay/pool.ts'

/** The pool in this directory as its image is now, which is what the kernel has written so far. `end` ends all that use it. */
export const cutPower = async (directory: string, end: () => Promise<void>): Promise<void> => {
  const image = join(directory, 'pool.img')
  const left = `${image}.left`
  execFileSync('cp', ['--sparse=always', image, left])
  await end()
  await unmountPool(directory)
  renameSync(left, image)
}
