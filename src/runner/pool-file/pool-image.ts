// Makes and mounts a btrfs file system in a sparse file. The file system contains the disks of sandboxes, or images that share
// layers.
import { existsSync } from 'node:fs'
import { mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { freeBytes, isWritable } from '#src/kit/file-system.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { GiB } from '#src/runner/cgroup/sandbox-limits.ts'
import { readOnlySince } from './space-claim.ts'

export type PoolImage = {
  /** Path of the sparse file that contains the file system. */
  image: string
  /** Directory on which the file system is mounted. */
  place: string
  /** Size of a new sparse file in bytes. Default: four fifths of the host's free space. */
  bytes?: number
  /** When the host gets back the space of removed files. `async` (default): some seconds later. `sync`: at the next sync. */
  discard?: 'async' | 'sync'
}

const shareOfFree = 0.8
const smallestImage = 1 * GiB

/** Makes the sparse file if it does not exist, and mounts its file system if that is not mounted. Returns the directory `place`. */
export const mountPoolImage = async ({ image, place, bytes, discard = 'async' }: PoolImage): Promise<string> => {
  await mkdir(place, { recursive: true, mode: 0o700 })
  const isMounted = await isMountPoint(place)
  if (isMounted && (await isWritable(place))) return place
  await makeImage(image, bytes ?? (await roomFor(dirname(image))))
  try {
    if (isMounted) await runCommand(['umount', place])
    // With the option `discard`, the host gets space back when files in the file system are removed.
    await runCommand(['mount', '-o', `loop,noatime,discard=${discard}`, image, place])
    return place
  } catch (error) {
    // Sandboxes may still use the file system although it is not mounted at `place`. The error then says what the operator can do.
    if (!isMounted && !(await isHeld(image))) throw error
    throw new Error(`${place} ${readOnlySince}`, { cause: error })
  }
}

/** Unmounts the file system, for tests. */
export const unmountPoolImage = async (place: string): Promise<void> => {
  if (existsSync(place) && (await isMountPoint(place))) await runCommand(['umount', place])
}

const isMountPoint = async (place: string) => {
  const device = (path: string) => stat(path).then(({ dev }) => dev)
  const [own, parent] = await Promise.all([device(place), device(dirname(place))])
  return own !== parent
}

/**
 * Whether the file system is mounted anywhere, even inside a sandbox: the loop device of the file exists until the last unmount.
 */
const isHeld = async (image: string) => (await runCommand(['losetup', '--associated', image])).trim() !== ''

const roomFor = async (directory: string) =>
  Math.max(smallestImage, Math.floor(((await freeBytes(directory)) * shareOfFree) / GiB) * GiB)

/** Makes the file under a temporary name, and renames it when it is complete, because the runner may be killed meanwhile. */
const makeImage = async (image: string, bytes: number) => {
  if (await stat(image).catch(() => undefined)) return
  const unfinished = `${image}.new`
  await rm(unfinished, { force: true })
  const file = await open(unfinished, 'w', 0o600)
  try {
    await file.truncate(bytes)
  } finally {
    await file.close()
  }
  await runCommand(['mkfs.btrfs', '--quiet', '--data', 'single', '--metadata', 'single', unfinished])
  await rename(unfinished, image)
}
