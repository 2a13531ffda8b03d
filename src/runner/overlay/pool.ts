// Where the disks of sandboxes live: one btrfs subvolume each, with a limit that the kernel enforces.
//
// The runner's directory itself where that is btrfs, else a sparse btrfs image in it, mounted beside it. Where btrfs is
// impossible, plain directories: everything works but the disk limit, and the runner says so.
import { readFileSync } from 'node:fs'
import { mkdir, open, rename, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { freeBytes, isBtrfs, isWritable } from '#src/kit/file-system.ts'
import type { Logger } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { GiB } from '#src/runner/cgroup/sandbox-limits.ts'
import { readIfThere } from '../cgroup/files.ts'
import { runSteps, type Step, step } from '../launch.ts'
import { uidBase } from '../oci/ids.ts'
import { Ballast, readOnlySince } from './ballast.ts'
import { isName, Volumes } from './volumes.ts'

export type Disk = {
  /** Directory that holds all of the following. */
  directory: string
  upper: string
  work: string
  /** The sandbox's own files of `/etc`; counted as its disk, never reachable by a path from inside. */
  etc: string
  /** What an overlay over `etc` works with. */
  etcWork: string
}

/** Whose disk another one begins as. */
export type Original = { sandboxId: string } | { template: string }

export interface StoragePool {
  readonly hardDiskLimit: boolean
  readonly sizeGiB: number
  /** With all disks below it. */
  readonly directory: string
  diskOf(sandboxId: string): Disk
  exists(sandboxId: string): Promise<boolean>
  /** The image that lies below a disk; undefined for one made before it was written down. */
  baseOf(of: Original): Promise<string | undefined>
  /** Steps that make a disk over an image, or do nothing if it is there. */
  stepsToMake(sandboxId: string, base: string): Step[]
  /** For a disk that does not say so: an old one, or what a power cut left. */
  stepToSayBase(sandboxId: string, base: string): Step
  /** Steps for a disk that does not count until `upper` and `etc` are put into it. */
  stepsToMakeEmpty(sandboxId: string, diskGiB: number): Step[]
  /** A disk like another is now, but for what makes a sandbox itself. Of btrfs, at once. */
  copyDisk(from: Original, sandboxId: string, base: string, diskGiB: number): Promise<void>
  /** Disks that were copied outlive a power cut when this resolves. */
  settleDisks(): Promise<void>
  /** Steps that bound it; the ones with room to spare are for what a start itself writes on a disk that is full. */
  stepsToLimit(sandboxId: string, diskGiB: number, room?: 'with room'): Step[]
  limit(sandboxId: string, diskGiB: number): Promise<void>
  /** All or nothing, also when killed half-way. Fine when it is gone already. */
  remove(sandboxId: string): Promise<void>
  list(): Promise<string[]>
  /** Keeps the disk of a sandbox, as it is now, for others to begin as; it is on the disk when this resolves. */
  makeTemplate(template: string, sandboxId: string, base: string): Promise<void>
  removeTemplate(template: string): Promise<void>
  /** What they hold, image below not counted; undefined where that is not known. */
  sizeOfTemplate(template: string): Promise<number | undefined>
  sizeOfDisk(sandboxId: string): Promise<number | undefined>
  /** Bytes of every disk, by sandbox; empty where that is not known. */
  sizesOfDisks(): Promise<ReadonlyMap<string, number>>
  listTemplates(): Promise<string[]>
  /** Stops watching how much room the host has. The disks stay. */
  close(): Promise<void>
}

export type PoolParts = {
  directory: string
  launcher: string
  log: Logger
  /** Only with `false` does the pool not try btrfs; for hosts where an image file is not wanted, and for tests. */
  useBtrfs?: boolean
  /** Size of a new pool file; absent: four fifths of what the host has free. It takes up what is written, not this. */
  imageBytes?: number
}

const shareOfFree = 0.8
const smallestImage = 1 * GiB
/** Bytes above the limit of a disk that a start may write on a full one. */
export const roomForStart = 8 * 1024 * 1024
/** Files that a restore writes anew have been seen to take up to 2.7 % more: their tree is another one. */
const roomForRestore = 0.04
/** The least limit, in bytes, of a disk that begins as a template of this size: half of the room is what a start needs itself. */
export const leastDiskFor = (templateBytes: number): number => Math.max(0, templateBytes - roomForStart / 2)
/** Limit of a template, which never grows. */
const unlimited = 2 ** 53 - 1
const imageIn = (directory: string) => join(directory, 'pool.img')
const mountIn = (directory: string) => join(directory, 'pool')
const disksName = 'disks'
const templatesName = 'templates'
/** The file that names the image below a disk. It lies in the `etc` of the disk, so it moves with the disk. */
const baseName = 'image'
/** A seed that two machines share is no secret; these are made anew where they are missing. */
const seeds = ['var/lib/systemd/random-seed', 'var/lib/urandom/random-seed', 'var/lib/dbus/machine-id']

export const openStoragePool = async (parts: PoolParts): Promise<StoragePool> => {
  const { directory, log, useBtrfs = true } = parts
  await mkdir(directory, { recursive: true })
  const root = useBtrfs ? await openBtrfs(parts) : undefined
  if (root === undefined) log.warn({ directory }, 'no btrfs here: sandboxes have no hard disk limit')
  const place = root ?? directory
  const { launcher } = parts
  const hasSubvolumes = root !== undefined
  const disks = await Volumes.open(launcher, join(place, disksName), hasSubvolumes)
  const templates = await Volumes.open(launcher, join(place, templatesName), hasSubvolumes)
  for (const name of await templates.list()) if (name.startsWith('.')) await templates.remove(name)
  const { blocks, bsize } = await statfs(place)
  const sizeGiB = Math.floor((blocks * bsize) / GiB)
  const ballast = place === mountIn(directory) ? new Ballast({ image: imageIn(directory), place, log }) : undefined
  await ballast?.look()
  return new DiskPool({ launcher, disks, templates, hardDiskLimit: hasSubvolumes, sizeGiB, directory: place, ballast })
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
    if (await stat(imageIn(parts.directory)).catch(() => undefined)) throw error
    parts.log.warn({ err: error }, 'a btrfs pool is impossible here')
    return undefined
  }
}

const mountImage = async ({ directory, imageBytes }: PoolParts): Promise<string> => {
  const place = mountIn(directory)
  const image = imageIn(directory)
  await mkdir(place, { recursive: true, mode: 0o700 })
  const isMounted = await isBtrfs(place)
  if (isMounted && (await isWritable(place))) return place
  await makeImage(image, imageBytes ?? (await roomFor(directory)))
  try {
    if (isMounted) await runCommand(['umount', place])
    // `discard`: what a sandbox deletes, the sparse image gives back to the host.
    await runCommand(['mount', '-o', 'loop,noatime,discard=async', image, place])
    return place
  } catch (error) {
    // What an earlier try has unmounted here is still that file system where sandboxes hold it.
    if (!isMounted && !(await isHeld(image))) throw error
    throw new Error(`${place} ${readOnlySince}`, { cause: error })
  }
}

/** A loop device has the image for as long as anybody has it mounted. */
const isHeld = async (image: string) => (await runCommand(['losetup', '--associated', image])).trim() !== ''

const roomFor = async (directory: string) =>
  Math.max(smallestImage, Math.floor(((await freeBytes(directory)) * shareOfFree) / GiB) * GiB)

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

/** The parts of the disk that is at this path. */
export const diskAt = (path: string): Disk => ({
  directory: path,
  upper: join(path, 'upper'),
  work: join(path, 'work'),
  etc: join(path, 'etc'),
  etcWork: join(path, 'etc-work'),
})

type Opened = Pick<StoragePool, 'hardDiskLimit' | 'sizeGiB' | 'directory'> & {
  launcher: string
  disks: Volumes
  templates: Volumes
  /** Set for a pool that is a sparse file. */
  ballast: Ballast | undefined
}

class DiskPool implements StoragePool {
  readonly hardDiskLimit: boolean
  readonly sizeGiB: number
  readonly directory: string
  readonly #launcher: string
  readonly #disks: Volumes
  readonly #templates: Volumes
  readonly #ballast: Ballast | undefined

  constructor({ launcher, disks, templates, hardDiskLimit, sizeGiB, directory, ballast }: Opened) {
    this.#launcher = launcher
    this.#disks = disks
    this.#templates = templates
    this.#ballast = ballast
    this.hardDiskLimit = hardDiskLimit
    this.sizeGiB = sizeGiB
    this.directory = directory
  }

  #pathOf(original: Original) {
    return 'template' in original ? this.#templates.pathOf(original.template) : this.#disks.pathOf(original.sandboxId)
  }

  diskOf(sandboxId: string): Disk {
    return diskAt(this.#disks.pathOf(sandboxId))
  }

  async exists(sandboxId: string) {
    // The last thing that is made of a disk.
    return (await stat(this.diskOf(sandboxId).etc).catch(() => undefined)) !== undefined
  }

  async baseOf(original: Original) {
    // An image may be called what no template is.
    if ('template' in original && !isName(original.template)) return undefined
    // A power cut may have left it without contents.
    return (await readIfThere(join(diskAt(this.#pathOf(original)).etc, baseName))) || undefined
  }

  stepsToMake(sandboxId: string, base: string): Step[] {
    const path = this.#disks.pathOf(sandboxId)
    const { upper } = diskAt(path)
    return [this.#disks.stepToMake(sandboxId), step.directory(upper, uidBase, 0o755), ...stepsToFinish(path, base)]
  }

  stepToSayBase(sandboxId: string, base: string) {
    return sayBase(this.#disks.pathOf(sandboxId), base)
  }

  stepsToMakeEmpty(sandboxId: string, diskGiB: number): Step[] {
    return [
      this.#disks.stepToMake(sandboxId),
      ...this.stepsToLimit(sandboxId, diskGiB, 'with room'),
      step.directory(this.diskOf(sandboxId).work, 0, 0o700),
    ]
  }

  copyDisk(from: Original, sandboxId: string, base: string, diskGiB: number) {
    const room = bytesWithRoom(diskGiB)
    return this.#disks.copy(this.#pathOf(from), sandboxId, (path) => [
      ...this.#disks.stepsToLimit(path, room),
      ...stepsToFinishCopy(path, base),
    ])
  }

  settleDisks() {
    return this.#disks.settle()
  }

  stepsToLimit(sandboxId: string, diskGiB: number, room?: 'with room'): Step[] {
    const bytes = room ? bytesWithRoom(diskGiB) : bytesOf(diskGiB)
    return this.#disks.stepsToLimit(this.#disks.pathOf(sandboxId), bytes)
  }

  async limit(sandboxId: string, diskGiB: number) {
    const steps = this.stepsToLimit(sandboxId, diskGiB)
    if (steps.length > 0) await runSteps(this.#launcher, steps)
  }

  remove(sandboxId: string) {
    return this.#disks.remove(sandboxId)
  }

  list() {
    return this.#disks.list()
  }

  async makeTemplate(template: string, sandboxId: string, base: string) {
    // A template without its base image is unusable and blocks the name: remove it first.
    await this.#templates.remove(template)
    await this.#templates.copy(this.#disks.pathOf(sandboxId), template, (path) => [
      ...this.#templates.stepsToLimit(path, unlimited),
      ...stepsToFinishCopy(path, base),
    ])
    await this.#templates.settle()
  }

  removeTemplate(template: string) {
    return this.#templates.remove(template)
  }

  sizeOfDisk(sandboxId: string) {
    return this.#disks.sizeOf(sandboxId)
  }

  sizesOfDisks() {
    return this.#disks.sizes()
  }

  sizeOfTemplate(template: string) {
    return this.#templates.sizeOf(template)
  }

  async listTemplates() {
    return (await this.#templates.list()).filter((name) => !name.startsWith('.'))
  }

  async close() {
    await this.#ballast?.close()
  }
}

const bytesOf = (diskGiB: number) => Math.round(diskGiB * GiB)

/** A disk that is larger than this limit can be read, and files in it removed, but nothing added. */
const bytesWithRoom = (diskGiB: number) => Math.round(diskGiB * GiB * (1 + roomForRestore)) + roomForStart

const stepsToFinish = (path: string, base: string): Step[] => {
  const { work, etc } = diskAt(path)
  return [step.directory(work, 0, 0o700), step.directory(etc, 0, 0o755), sayBase(path, base)]
}

const sayBase = (path: string, base: string) => step.newFile(join(diskAt(path).etc, baseName), 0, base)

/**
 * Removes from a copy what belongs to the sandbox it was copied from. The name of the image below it is synced, because nothing
 * else says which image that is.
 */
const stepsToFinishCopy = (path: string, base: string): Step[] => {
  const { upper, work, etc, etcWork } = diskAt(path)
  return [
    step.removeTree(work),
    step.removeTree(etc),
    step.removeTree(etcWork),
    ...seeds.map((seed) => step.forgetFile(upper, seed)),
    ...stepsToFinish(path, base),
    step.sync(join(etc, baseName)),
  ]
}

/** For tests, which take their instance away with everything: takes the mounted image away. Sandboxes must be gone. */
export const unmountPool = async (directory: string): Promise<void> => {
  const place = mountIn(directory)
  const mounted = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
  if (mounted.some((line) => line.split(' ')[4] === place)) await runCommand(['umount', place])
}
