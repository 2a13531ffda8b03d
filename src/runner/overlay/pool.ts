// Where the disks of sandboxes live: one btrfs subvolume each, with a limit that the kernel enforces.
//
// The runner's directory itself where that is btrfs, else a sparse btrfs image in it, mounted beside it. Where btrfs is
// impossible, plain directories: everything works but the disk limit, and the runner says so.
import { readFileSync } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { hasCode } from '../cgroup/files.ts'
import { runSteps, type Step, step } from '../launch.ts'
import { GiB, uidBase } from '../oci/sandbox-limits.ts'

export type Disk = {
  upper: string
  work: string
  /** The sandbox's own files of `/etc`; counted as its disk, never reachable by a path from inside. */
  etc: string
}

export interface StoragePool {
  readonly hardDiskLimit: boolean
  readonly sizeGiB: number
  diskOf(sandboxId: string): Disk
  exists(sandboxId: string): Promise<boolean>
  /** Steps that make a disk, or do nothing if it is there. */
  stepsToMake(sandboxId: string): Step[]
  /** Steps that bound it; the ones with room to spare are for what a start itself writes on a disk that is full. */
  stepsToLimit(sandboxId: string, diskGiB: number, room?: 'with room'): Step[]
  limit(sandboxId: string, diskGiB: number): Promise<void>
  /** All or nothing, also when killed half-way. Fine when it is gone already. */
  remove(sandboxId: string): Promise<void>
  list(): Promise<string[]>
}

export type PoolParts = {
  directory: string
  launcher: string
  log: Logger
  /** Only with `false` does the pool not try btrfs; for hosts where an image file is not wanted, and for tests. */
  useBtrfs?: boolean
  /** Of a new image; absent: four fifths of what the host has free. It takes up what is written, not this. */
  imageBytes?: number
}

const btrfsMagic = 0x9123683e
const shareOfFree = 0.8
const smallestImage = 1 * GiB
const roomForStart = 8 * 1024 * 1024
const imageName = 'pool.img'
const mountName = 'pool'
/** Disks lie below this name in the pool. */
const disksName = 'disks'
/** A plain directory on its way out; a name no sandbox has. */
const leaving = '.leaving-'

const isBtrfs = async (path: string) => (await statfs(path)).type === btrfsMagic

export const openStoragePool = async (parts: PoolParts): Promise<StoragePool> => {
  const { directory, log, useBtrfs = true } = parts
  await mkdir(directory, { recursive: true })
  const root = useBtrfs ? await openBtrfs(parts) : undefined
  if (root === undefined) log.warn({ directory }, 'no btrfs here: sandboxes have no hard disk limit')
  const place = root ?? directory
  const disks = join(place, disksName)
  await mkdir(disks, { recursive: true, mode: 0o700 })
  const { blocks, bsize } = await statfs(place)
  const sizeGiB = Math.floor((blocks * bsize) / GiB)
  return new Pool(parts.launcher, disks, root !== undefined, sizeGiB)
}

/** The directory of the btrfs pool, mounted and with quotas; undefined if this host cannot have one. */
const openBtrfs = async (parts: PoolParts): Promise<string | undefined> => {
  try {
    const place = (await isBtrfs(parts.directory)) ? parts.directory : await mountImage(parts)
    // Answers at once where it is enabled already.
    await runCommand(['btrfs', 'quota', 'enable', place])
    return place
  } catch (error) {
    // An image that is there holds the disks of sandboxes: going on without it would look as if they were lost.
    if (await stat(join(parts.directory, imageName)).catch(() => undefined)) throw error
    parts.log.warn({ err: error }, 'a btrfs pool is impossible here')
    return undefined
  }
}

const mountImage = async ({ directory, imageBytes }: PoolParts): Promise<string> => {
  const place = join(directory, mountName)
  const image = join(directory, imageName)
  await mkdir(place, { recursive: true, mode: 0o700 })
  if (await isBtrfs(place)) return place
  await makeImage(image, imageBytes ?? (await roomFor(directory)))
  // `discard`: what a sandbox deletes, the sparse image gives back to the host.
  await runCommand(['mount', '-o', 'loop,noatime,discard=async', image, place])
  return place
}

const roomFor = async (directory: string) => {
  const { bavail, bsize } = await statfs(directory)
  return Math.max(smallestImage, Math.floor((bavail * bsize * shareOfFree) / GiB) * GiB)
}

/** Under another name until it is whole, so that a runner that was killed here starts over. */
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

class Pool implements StoragePool {
  readonly hardDiskLimit: boolean
  readonly sizeGiB: number
  readonly #launcher: string
  readonly #disks: string

  constructor(launcher: string, disks: string, hardDiskLimit: boolean, sizeGiB: number) {
    this.#launcher = launcher
    this.#disks = disks
    this.hardDiskLimit = hardDiskLimit
    this.sizeGiB = sizeGiB
  }

  #path(sandboxId: string) {
    return join(this.#disks, sandboxId)
  }

  diskOf(sandboxId: string): Disk {
    const path = this.#path(sandboxId)
    return { upper: join(path, 'upper'), work: join(path, 'work'), etc: join(path, 'etc') }
  }

  async exists(sandboxId: string) {
    // The last thing that is made of a disk.
    return (await stat(this.diskOf(sandboxId).etc).catch(() => undefined)) !== undefined
  }

  stepsToMake(sandboxId: string): Step[] {
    const path = this.#path(sandboxId)
    const { upper, work, etc } = this.diskOf(sandboxId)
    return [
      this.hardDiskLimit ? step.subvolume(path) : step.directory(path, 0, 0o700),
      step.directory(upper, uidBase, 0o755),
      step.directory(work, 0, 0o700),
      step.directory(etc, 0, 0o755),
    ]
  }

  stepsToLimit(sandboxId: string, diskGiB: number, room?: 'with room'): Step[] {
    const bytes = Math.round(diskGiB * GiB) + (room ? roomForStart : 0)
    return this.hardDiskLimit ? [step.limit(this.#path(sandboxId), bytes)] : []
  }

  async limit(sandboxId: string, diskGiB: number) {
    const steps = this.stepsToLimit(sandboxId, diskGiB)
    if (steps.length > 0) await runSteps(this.#launcher, steps)
  }

  async remove(sandboxId: string) {
    if (this.hardDiskLimit) return runSteps(this.#launcher, [step.deleteSubvolume(this.#path(sandboxId))])
    // Half a disk must never be started again, so it loses its name first.
    const going = join(this.#disks, `${leaving}${sandboxId.replace(leaving, '')}`)
    try {
      if (!sandboxId.startsWith(leaving)) await rename(this.#path(sandboxId), going)
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error
    }
    await rm(going, { recursive: true, force: true })
  }

  list() {
    return readdir(this.#disks)
  }
}

/** For tests and `destroy everything`: takes the mounted image away. Sandboxes must be gone. */
export const unmountPool = async (directory: string): Promise<void> => {
  const place = join(directory, mountName)
  const mounted = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  if (mounted.some((line) => line.split(' ')[4] === place)) await runCommand(['umount', place])
}
