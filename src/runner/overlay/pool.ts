// Stores the disks of sandboxes. Each disk is a btrfs subvolume with a size limit that the kernel enforces.
//
// If the runner's directory is not on btrfs, the pool is a sparse image file with btrfs. If the host cannot use btrfs, disks are
// plain directories without a size limit.
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
  /** The disk's own directory, which contains all other parts of the disk. */
  directory: string
  upper: string
  work: string
  /**
   * The sandbox's `/etc` files that the runner writes, such as `hosts`. These files count towards the disk limit. The sandbox
   * cannot see the directory itself, which also contains the name of the base image.
   */
  etc: string
  /** Work directory of the overlay that has `etc` as its upper layer. */
  etcWork: string
}

/** The disk or template from which a new disk is copied. */
export type Original = { sandboxId: string } | { template: string }

export interface StoragePool {
  readonly hardDiskLimit: boolean
  readonly sizeGiB: number
  /** The directory that contains all disks. */
  readonly directory: string
  /** The volumes with the driver `disk`, which are on this host's disk. */
  readonly volumes: Subvolumes
  diskOf(sandboxId: string): Disk
  exists(sandboxId: string): Promise<boolean>
  /**
   * Returns the base image of a disk or template. Undefined if an old runner recorded no base image, or a power cut has lost the
   * record.
   */
  baseOf(of: Original): Promise<string | undefined>
  /** Steps that make a disk with an image as its base. These steps do nothing if the disk exists. */
  stepsToMake(sandboxId: string, base: string): Step[]
  /** A step that records the base image of a disk if no base image is recorded (see `baseOf`). */
  stepToSayBase(sandboxId: string, base: string): Step
  /**
   * Steps that make an empty disk, into which an archive is then unpacked. The steps make the directory `etc` last. Until `etc`
   * exists, the method `exists` returns false.
   */
  stepsToMakeEmpty(sandboxId: string, diskGiB: number): Step[]
  /** Copies a disk or template, without the files that identify the sandbox. On btrfs this takes almost no time. */
  copyDisk(from: Original, sandboxId: string, base: string, diskGiB: number): Promise<void>
  /** Resolves when no power cut can lose a copied disk. */
  settleDisks(): Promise<void>
  /**
   * Steps that set the size limit of a disk. `with room`: sets a slightly higher limit, so that a sandbox with a full disk can
   * start.
   */
  stepsToLimit(sandboxId: string, diskGiB: number, room?: 'with room'): Step[]
  limit(sandboxId: string, diskGiB: number): Promise<void>
  /** Removes a disk. If the runner is killed meanwhile, the disk is complete or gone. A missing disk is no error. */
  remove(sandboxId: string): Promise<void>
  list(): Promise<string[]>
  /** Stores a copy of a sandbox's disk as a template. When the promise resolves, no power cut can lose the template. */
  makeTemplate(template: string, sandboxId: string, base: string): Promise<void>
  /**
   * Makes a template of at most `mostGiB`. The template gets its name only when `fill` has resolved, so a named template is
   * complete.
   */
  fillTemplate(template: string, mostGiB: number, fill: (disk: Disk) => Promise<void>): Promise<void>
  diskOfTemplate(template: string): Disk
  removeTemplate(template: string): Promise<void>
  /** Size of a template in bytes, without its base image. Undefined if the pool cannot measure sizes. */
  sizeOfTemplate(template: string): Promise<number | undefined>
  sizeOfDisk(sandboxId: string): Promise<number | undefined>
  /** Size of every disk in bytes, without its base image, by sandbox id. Empty if the pool cannot measure sizes. */
  sizesOfDisks(): Promise<ReadonlyMap<string, number>>
  listTemplates(): Promise<string[]>
  /** Size of every template in bytes, without its base image, by name. Empty if the pool cannot measure sizes. */
  sizesOfTemplates(): Promise<ReadonlyMap<string, number>>
  /** Time at which a template was made or last marked as used. 0 if there is no such template. */
  lastUseOfTemplate(template: string): Promise<number>
  markTemplateUsed(template: string): Promise<void>
  room(): Promise<{ freeBytes: number; wholeBytes: number }>
  /** Stops changing the size of the ballast. The disks stay. */
  close(): Promise<void>
}

export type PoolParts = {
  directory: string
  launcher: string
  log: Logger
  /** False: disks are plain directories. For tests, and for hosts that shall not have a file with a btrfs pool. */
  useBtrfs?: boolean
  /** Maximum size of the new file with the btrfs pool. Default: four fifths of the host's free space. */
  imageBytes?: number
}

/** A start raises the disk limit by this many bytes: the runner must write `/etc` files even on a full disk. */
export const roomForStart = 8 * 1024 * 1024
/** A restore raises the disk limit by this fraction: file system metadata made restored disks up to 2.7 % larger. */
const roomForRestore = 0.04
/**
 * Returns the smallest disk limit, in bytes, with which a template of this size can start. A start raises the limit by
 * `roomForStart`: at most half of these bytes is for the start's own files. The template may use the other half.
 */
export const leastDiskFor = (templateBytes: number): number => Math.max(0, templateBytes - roomForStart / 2)
/** Size limit of a template in bytes. The limit is so high that it has no effect: a template never grows. */
const unlimited = 2 ** 53 - 1
const imageIn = (directory: string) => join(directory, 'pool.img')
const mountIn = (directory: string) => join(directory, 'pool')
const disksName = 'disks'
const templatesName = 'templates'
const volumesName = 'volumes'
/** Name of the file in `Disk.etc` that contains the name of the disk's base image. */
const baseName = 'image'
/** Random seeds and ids that no two machines may share. A copied disk gets new seeds and ids at its first start. */
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

/** Returns the directory of the btrfs pool, mounted and with quotas. Undefined if btrfs is impossible on this host. */
const openBtrfs = async (parts: PoolParts): Promise<string | undefined> => {
  try {
    const { directory, imageBytes: bytes } = parts
    const file = { image: imageIn(directory), place: mountIn(directory), ...(bytes === undefined ? {} : { bytes }) }
    const place = (await isBtrfs(directory)) ? directory : await mountPoolImage(file)
    // If quotas are already enabled, this command returns immediately.
    await runCommand(['btrfs', 'quota', 'enable', place])
    return place
  } catch (error) {
    // The existing image file contains disks of sandboxes. A runner without this file would report these disks as lost.
    if (await stat(imageIn(parts.directory)).catch(() => undefined)) throw error
    parts.log.warn({ err: error }, 'a btrfs pool is impossible here')
    return undefined
  }
}

/** Returns the paths of the parts of a disk whose directory is `path`. */
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
  /** Grows and shrinks the ballast. Undefined if the pool is not a sparse image file. */
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
    // `etc` is the last part of a disk to be made, so a disk with `etc` is complete.
    return (await stat(this.diskOf(sandboxId).etc).catch(() => undefined)) !== undefined
  }

  async baseOf(original: Original) {
    // `template` may be the name of an image, such as `debian:12`, for which no base image is recorded.
    if ('template' in original && !isName(original.template)) return undefined
    // After a power cut, the file with the base image's name may be empty.
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
    // If a template with this name still exists here, it has lost the record of its base image, and is unusable. Remove that
    // template.
    await this.#templates.remove(template)
    await this.#templates.copy(this.#disks.pathOf(sandboxId), template, (path) =>
      changesOfCopy(path, base, this.#templates.stepsToLimit(path, unlimited)),
    )
    await this.#templates.settle()
  }

  fillTemplate(template: string, mostGiB: number, fill: (disk: Disk) => Promise<void>) {
    const steps = (path: string) => [
      ...this.#templates.stepsToLimit(path, bytesWithRoom(mostGiB)),
      step.directory(diskAt(path).work, 0, 0o700),
    ]
    return this.#templates.fill(template, steps, (path) => fill(diskAt(path)))
  }

  diskOfTemplate(template: string): Disk {
    return diskAt(this.#templates.pathOf(template))
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
 * Returns a disk's size limit in bytes while the disk is restored, copied or started. Afterwards the lower usual limit applies. On
 * a disk above the usual limit, files can be read and removed, but not added.
 */
const bytesWithRoom = (diskGiB: number) => Math.round(diskGiB * GiB * (1 + roomForRestore)) + roomForStart

const stepsToFinish = (path: string, base: string): Step[] => {
  const { work, etc } = diskAt(path)
  return [step.directory(work, 0, 0o700), step.directory(etc, 0, 0o755), sayBase(path, base)]
}

const sayBase = (path: string, base: string) => step.newFile(join(diskAt(path).etc, baseName), 0, base)

/**
 * Steps that remove from a copied disk what identifies the original sandbox. The step `sync` protects the file `baseName` from a
 * power cut. Only the file `baseName` says which image is the copy's base.
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

/** Unmounts the pool's image file, for tests. No sandbox may use the pool any more. */
export const unmountPool = (directory: string): Promise<void> => unmountPoolImage(mountIn(directory))
