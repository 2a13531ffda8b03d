// Stores the disks of sandboxes: one btrfs subvolume each, with a limit that the kernel enforces.
//
// The pool is the runner's directory if that is on btrfs; otherwise a sparse btrfs image in that directory, mounted beside it.
// Where btrfs is impossible, disks are plain directories without a limit, and the runner logs that.
import { mkdir, stat, statfs, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { isBtrfs } from '#src/kit/file-system.ts'
import type { Logger } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { GiB } from '#src/runner/cgroup/sandbox-limits.ts'
import { readIfThere } from '../cgroup/files.ts'
import { runSteps, type Step, step } from '../launch.ts'
import { uidBase } from '../oci/ids.ts'
import { mountPoolImage, unmountPoolImage } from '../pool-file/pool-image.ts'
import { SpaceClaim } from '../pool-file/space-claim.ts'
import { type Changes, isName, Subvolumes } from './subvolumes.ts'

export type Disk = {
  /** Directory that contains the other parts of the disk. */
  directory: string
  upper: string
  work: string
  /** The sandbox's own files of `/etc`. They count against its disk limit, and no path inside leads to them. */
  etc: string
  /** Work directory of an overlay over `etc`. */
  etcWork: string
}

/** The disk or template that a new disk is copied from. */
export type Original = { sandboxId: string } | { template: string }

export interface StoragePool {
  readonly hardDiskLimit: boolean
  readonly sizeGiB: number
  /** The directory that contains all disks. */
  readonly directory: string
  /** The volumes of sandboxes whose driver is `disk`. */
  readonly volumes: Subvolumes
  diskOf(sandboxId: string): Disk
  exists(sandboxId: string): Promise<boolean>
  /** The base image of a disk. Undefined if no base image is recorded: in an old disk, or after a power cut. */
  baseOf(of: Original): Promise<string | undefined>
  /** Steps that make a disk over an image. They do nothing if the disk exists. */
  stepsToMake(sandboxId: string, base: string): Step[]
  /** Step that records the base image of a disk that lacks this record: an old disk, or a disk after a power cut. */
  stepToSayBase(sandboxId: string, base: string): Step
  /** Steps for an empty disk. The pool does not list the disk until `upper` and `etc` are moved into it. */
  stepsToMakeEmpty(sandboxId: string, diskGiB: number): Step[]
  /** Makes a disk as a copy of another disk, without that sandbox's identity files. Instant on btrfs. */
  copyDisk(from: Original, sandboxId: string, base: string, diskGiB: number): Promise<void>
  /** Resolves when copied disks would survive a power cut. */
  settleDisks(): Promise<void>
  /** Steps that limit a disk. `with room` adds space for what a start writes on a full disk. */
  stepsToLimit(sandboxId: string, diskGiB: number, room?: 'with room'): Step[]
  limit(sandboxId: string, diskGiB: number): Promise<void>
  /** Removes a disk. Atomic, even if killed. No error if the disk does not exist. */
  remove(sandboxId: string): Promise<void>
  list(): Promise<string[]>
  /** Keeps a copy of a sandbox's current disk as a template. When this resolves, the template is on the disk. */
  makeTemplate(template: string, sandboxId: string, base: string): Promise<void>
  removeTemplate(template: string): Promise<void>
  /** Bytes of a template or disk without its base image; undefined if unknown. */
  sizeOfTemplate(template: string): Promise<number | undefined>
  sizeOfDisk(sandboxId: string): Promise<number | undefined>
  /** Bytes of every disk, by sandbox. Empty if unknown. */
  sizesOfDisks(): Promise<ReadonlyMap<string, number>>
  listTemplates(): Promise<string[]>
  /** Bytes of every template without its base image. Empty if unknown. */
  sizesOfTemplates(): Promise<ReadonlyMap<string, number>>
  /** When a template was made or last marked as used; 0 if there is no such template. */
  lastUseOfTemplate(template: string): Promise<number>
  markTemplateUsed(template: string): Promise<void>
  room(): Promise<{ freeBytes: number; wholeBytes: number }>
  /** Stops watching the host's free space. The disks stay. */
  close(): Promise<void>
}

export type PoolParts = {
  directory: string
  launcher: string
  log: Logger
  /** False: never use btrfs. For hosts where an image file is not wanted, and for tests. */
  useBtrfs?: boolean
  /** Size of a new pool image. Default: four fifths of the host's free space. The image takes only the space that is written. */
  imageBytes?: number
}

/** Bytes above the disk limit that a start may write on a full disk. */
export const roomForStart = 8 * 1024 * 1024
/**
 * Share of the limit that a restore may exceed. Restored disks were seen to take up to 2.7 % more space, because their metadata
 * tree differs.
 */
const roomForRestore = 0.04
/**
 * The smallest disk limit in bytes for a template of this size. The pool adds `roomForStart` to each limit, and a start needs
 * only half of that.
 */
export const leastDiskFor = (templateBytes: number): number => Math.max(0, templateBytes - roomForStart / 2)
/** Limit of a template: effectively none, because a template never grows. */
const unlimited = 2 ** 53 - 1
const imageIn = (directory: string) => join(directory, 'pool.img')
const mountIn = (directory: string) => join(directory, 'pool')
const disksName = 'disks'
const templatesName = 'templates'
const volumesName = 'volumes'
/** File that names the base image of a disk. It is in the `etc` of the disk, so it moves with the disk. */
const baseName = 'image'
/** Secret seeds and ids that no two machines may share. A missing file is made again at the next start. */
const seeds = ['var/lib/systemd/random-seed', 'var/lib/urandom/random-seed', 'var/lib/dbus/machine-id']

export const openStoragePool = async (parts: PoolParts): Promise<StoragePool> => {
  const { directory, log, useBtrfs = true } = parts
  await mkdir(directory, { recursive: true })
  const root = useBtrfs ? await openBtrfs(parts) : undefined
  if (root === undefined) log.warn({ directory }, 'no btrfs here: sandboxes have no hard disk limit')
  const place = root ?? directory
  const { launcher } = parts
  const hasSubvolumes = root !== undefined
  const disks = await Subvolumes.open(launcher, join(place, disksName), hasSubvolumes)
  const templates = await Subvolumes.open(launcher, join(place, templatesName), hasSubvolumes)
  const volumes = await Subvolumes.open(launcher, join(place, volumesName), hasSubvolumes)
  for (const name of await templates.list()) if (name.startsWith('.')) await templates.remove(name)
  const { blocks, bsize } = await statfs(place)
  const sizeGiB = Math.floor((blocks * bsize) / GiB)
  const spaceClaim =
    place === mountIn(directory) ? new SpaceClaim({ image: imageIn(directory), place, log }) : undefined
  await spaceClaim?.look()
  return new DiskPool({
    launcher,
    disks,
    templates,
    volumes,
    hardDiskLimit: hasSubvolumes,
    sizeGiB,
    directory: place,
    spaceClaim,
  })
}

/** The directory of the btrfs pool, mounted and with quotas; undefined if this host cannot have one. */
const openBtrfs = async (parts: PoolParts): Promise<string | undefined> => {
  try {
    const { directory, imageBytes: bytes } = parts
    const file = { image: imageIn(directory), place: mountIn(directory), ...(bytes === undefined ? {} : { bytes }) }
    const place = (await isBtrfs(directory)) ? directory : await mountPoolImage(file)
    // Returns immediately if quotas are enabled already.
    await runCommand(['btrfs', 'quota', 'enable', place])
    return place
  } catch (error) {
    // If the pool's image file exists, it contains disks of sandboxes. A runner that started without it would report these disks
    // as lost.
    if (await stat(imageIn(parts.directory)).catch(() => undefined)) throw error
    parts.log.warn({ err: error }, 'a btrfs pool is impossible here')
    return undefined
  }
}

/** The parts of the disk at this path. */
export const diskAt = (path: string): Disk => ({
  directory: path,
  upper: join(path, 'upper'),
  work: join(path, 'work'),
  etc: join(path, 'etc'),
  etcWork: join(path, 'etc-work'),
})

type Opened = Pick<StoragePool, 'hardDiskLimit' | 'sizeGiB' | 'directory' | 'volumes'> & {
  launcher: string
  disks: Subvolumes
  templates: Subvolumes
  /** Set if the pool is a sparse file. */
  spaceClaim: SpaceClaim | undefined
}

class DiskPool implements StoragePool {
  readonly hardDiskLimit: boolean
  readonly sizeGiB: number
  readonly directory: string
  readonly volumes: Subvolumes
  readonly #launcher: string
  readonly #disks: Subvolumes
  readonly #templates: Subvolumes
  readonly #spaceClaim: SpaceClaim | undefined

  constructor({ launcher, disks, templates, volumes, hardDiskLimit, sizeGiB, directory, spaceClaim }: Opened) {
    this.#launcher = launcher
    this.#disks = disks
    this.#templates = templates
    this.volumes = volumes
    this.#spaceClaim = spaceClaim
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
    // `etc` is made last, so a disk with `etc` is complete.
    return (await stat(this.diskOf(sandboxId).etc).catch(() => undefined)) !== undefined
  }

  async baseOf(original: Original) {
    // An image's name may have characters that are not allowed in names of templates. Then no template has this name.
    if ('template' in original && !isName(original.template)) return undefined
    // A power cut may have left the file empty.
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
    return this.#disks.copy(this.#pathOf(from), sandboxId, (path) =>
      changesOfCopy(path, base, this.#disks.stepsToLimit(path, room)),
    )
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
    await this.#templates.copy(this.#disks.pathOf(sandboxId), template, (path) =>
      changesOfCopy(path, base, this.#templates.stepsToLimit(path, unlimited)),
    )
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

  sizesOfTemplates() {
    return this.#templates.sizes()
  }

  async lastUseOfTemplate(template: string) {
    return (await stat(this.#templates.pathOf(template)).catch(() => undefined))?.mtimeMs ?? 0
  }

  async markTemplateUsed(template: string) {
    const now = new Date()
    await utimes(this.#templates.pathOf(template), now, now)
  }

  async room() {
    const { blocks, bavail, bsize } = await statfs(this.directory)
    return { freeBytes: bavail * bsize, wholeBytes: blocks * bsize }
  }

  async listTemplates() {
    return (await this.#templates.list()).filter((name) => !name.startsWith('.'))
  }

  async close() {
    await this.#spaceClaim?.close()
  }
}

const bytesOf = (diskGiB: number) => Math.round(diskGiB * GiB)

/**
 * The limit of a disk during a restore, in bytes. Above it a disk can be read, and files in it removed, but nothing can be added.
 */
const bytesWithRoom = (diskGiB: number) => Math.round(diskGiB * GiB * (1 + roomForRestore)) + roomForStart

const stepsToFinish = (path: string, base: string): Step[] => {
  const { work, etc } = diskAt(path)
  return [step.directory(work, 0, 0o700), step.directory(etc, 0, 0o755), sayBase(path, base)]
}

const sayBase = (path: string, base: string) => step.newFile(join(diskAt(path).etc, baseName), 0, base)

/**
 * Changes that remove from a copy what identifies its original sandbox. The base image's name is synced, because nothing else
 * records it.
 */
const changesOfCopy = (path: string, base: string, limit: readonly Step[]): Changes => {
  const { upper, work, etc, etcWork } = diskAt(path)
  return {
    change: [
      ...limit,
      step.removeTree(work),
      step.removeTree(etc),
      step.removeTree(etcWork),
      ...seeds.map((seed) => step.forgetFile(upper, seed)),
      ...stepsToFinish(path, base),
    ],
    sync: [step.sync(join(etc, baseName))],
  }
}

/** For tests, which remove their whole instance: unmounts the pool's image. No sandbox may be left. */
export const unmountPool = (directory: string): Promise<void> => unmountPoolImage(mountIn(directory))
