// Manages the images that were fetched to this runner. An image's record is written last and removed first, so a kill leaves the
// image complete or absent.
import { createHash, randomBytes } from 'node:crypto'
import { type FileHandle, mkdir, rm, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '#src/kit/log.ts'
import { FairQueue } from '#src/kit/queue.ts'
import { removeTree } from '#src/kit/remove-tree.ts'
import { CommandFailed } from '#src/kit/run-command.ts'
import type { Progress } from '#src/wire/runner-link.ts'
import { groupLargeIds } from '../oci/ids.ts'
import type { BaseTravel } from './base-content.ts'
import { type BaseIdentity, imageOfBase } from './base-identity.ts'
import { Blobs } from './blobs.ts'
import type { GivenBack } from './given-back.ts'
import { ImageFailed, Unreached } from './image-failed.ts'
import {
  type Accounts,
  builtInBelow,
  ImageMaker,
  type LibrarySource,
  type Made,
  type Making,
  type Said,
} from './image-maker.ts'
import { ImagePool } from './image-pool.ts'
import { asBrought, type Brought, ImageRecords, imageNameShape, type StoredImage } from './image-records.ts'
import { Interrupted } from './interrupted.ts'
import { asSize, type ImageLimits } from './limits.ts'
import { type ContainerConfig, imageConfigOf } from './manifest.ts'
import { parseReference } from './reference.ts'
import { fetchRepository, type Repository, type RepositoryFile } from './repository.ts'
import { SharedWork } from './shared-work.ts'
import { checkMayAsk, type RegistrySettings } from './skopeo.ts'
import { keptNamesOf, Sweeper } from './sweeper.ts'
import { PlainPlace } from './tree-place.ts'
import { Trees } from './trees.ts'
import { fetchWebFile, type Fetching as WebFetching, type WebFile } from './web-file.ts'

/**
 * Base image of a definition that is being built. Until `complete` is called, `list` omits this image, and a restart removes it.
 */
export type Base = {
  container: ContainerConfig
  digest?: string
  sizeBytes: number
  /** Name of the directory with the image's files. Two images with the same directory have the same files. */
  files: string
}

export type BringRequest = {
  /** Name for the image. A name is never reused, so an image that has this name is the requested one. */
  image: string
  source: LibrarySource
  maxGiB: number
  /**
   * User ids that the definition names, for example with USER, and that are too large for the usual user id map of a sandbox
   * (oci/ids.ts). If a sandbox's id map has no space for all of them, all are ignored.
   */
  largeIds?: readonly number[] | undefined
  /** The organization that the image belongs to. The images of one organization together may use only a share of the disk. */
  organizationId?: string | undefined
  /** Credentials of the organization for registries. */
  logins?: Accounts['logins']
  signal?: AbortSignal | undefined
  onProgress?: (progress: Progress) => void
  /** Called with each line for the build log of the caller. */
  onLine?: (line: string) => void
}

export type WebFileRequest = { url: string; checksum?: string | undefined; mostBytes: number; signal: AbortSignal }

export type RepositoryRequest = Omit<WebFileRequest, 'url'> & { repository: Repository }

type LibraryParts = {
  /** Directory, on one file system, for everything that must survive a restart of the runner. */
  poolDir: string
  /** Directory where operators put files that contain an image, such as files that `docker save` writes. */
  filesDir: string | undefined
  registries: RegistrySettings
  limits: ImageLimits
  log: Logger
  givenBack?: GivenBack | undefined
  /** Whether images share layers on a btrfs file system that the library makes for them (`image-pool.ts`). */
  sharesLayers?: boolean | undefined
  /** Size of the shared btrfs file system. Default: four fifths of the host's free space. */
  sharedBytes?: number | undefined
  /** Functions of the object store that base images need. Absent: base images are not fetched from the store. */
  travel?: BaseTravel | undefined
}

const GiB = 1024 ** 3

const withIds = (own: readonly number[], wanted: readonly number[]): Pick<StoredImage, 'largeIds'> => {
  const all = [...new Set([...own, ...wanted])]
  const largeIds = groupLargeIds(all) === undefined ? own : all
  return largeIds.length === 0 ? {} : { largeIds }
}

/**
 * Identifies the credentials of a request. Requests with different credentials share no download, because a registry may hide an
 * image from some credentials.
 */
const keyOfAccounts = ({ organizationId, logins = [] }: Accounts): string =>
  logins.length === 0
    ? ''
    : createHash('sha256')
        .update(JSON.stringify([organizationId, logins]))
        .digest('hex')

/**
 * Removes a directory by Node's `rm`. If that fails, for example because a path is too long, uses `removeTree`, which is slower.
 */
const removeScratch = (scratch: string) =>
  rm(scratch, { recursive: true, force: true }).catch(() => removeTree(scratch))

/**
 * Runs `work`, which fetches from a server that a caller has named. If `work` throws `Unreached`, delays this error until its
 * `notBefore`, so that the time does not reveal the cause. Only `work` takes a place in the queue of images, not the delay.
 */
const tellingEvenly = async <T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Unreached) await delay(error.notBefore - performance.now(), undefined, { signal })
    throw error
  }
}

export class Library {
  readonly #parts: LibraryParts
  readonly #records: ImageRecords
  readonly #scratch: string
  readonly #plainTrees: PlainPlace
  readonly #pool: ImagePool | undefined
  readonly #trees: Trees
  readonly #blobs: Blobs
  readonly #interrupted: Interrupted
  readonly #maker: ImageMaker
  readonly #sharing = new SharedWork<Said, Made>()
  readonly #lanes: FairQueue
  readonly #recording = new FairQueue({ atOnce: 1 })
  #waiting = 0
  readonly #sweeper: Sweeper
  #opened: Promise<void> | undefined

  constructor(parts: LibraryParts) {
    this.#parts = parts
    this.#records = new ImageRecords(join(parts.poolDir, 'images'))
    this.#scratch = join(parts.poolDir, 'image-work')
    this.#plainTrees = new PlainPlace(join(parts.poolDir, 'image-trees'))
    this.#trees = new Trees(this.#plainTrees)
    const { poolDir, log, limits, sharedBytes } = parts
    this.#pool = parts.sharesLayers
      ? new ImagePool({ poolDir, keepFreeBytes: limits.keepFreeBytes, log, bytes: sharedBytes })
      : undefined
    this.#blobs = new Blobs(join(parts.poolDir, 'image-layers'))
    this.#interrupted = new Interrupted(join(parts.poolDir, 'image-downloads'))
    const [records, trees, blobs, interrupted] = [this.#records, this.#trees, this.#blobs, this.#interrupted]
    this.#maker = new ImageMaker({ ...parts, records, trees, blobs, interrupted })
    this.#sweeper = new Sweeper({ ...parts, records, trees, blobs, interrupted })
    this.#lanes = new FairQueue({ atOnce: parts.limits.atOnce })
  }

  /**
   * Makes the library's directories, and removes what a killed runner left in them. No other runner may use these directories.
   */
  open(): Promise<void> {
    this.#opened ??= this.#open().catch((error: unknown) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  async #open() {
    await this.#blobs.open()
    await this.#interrupted.open(this.#scratch, this.#blobs)
    // Programs of a killed runner may still write for a moment, so the removal is retried.
    await removeTree(this.#scratch, { tries: 10 })
    await mkdir(this.#scratch, { recursive: true, mode: 0o700 })
    await this.#plainTrees.open()
    await this.openTrees()
    await this.#records.open()
    await this.#trees.removeTorn()
    await this.#sweeper.sweep()
  }

  /** Mounts the file system of the images' files, if it exists. Call this before any sandbox that uses these images starts. */
  async openTrees(): Promise<void> {
    const place = await this.#pool?.openExisting()
    if (place !== undefined) this.#trees.shareAt(place)
  }

  async #shareTrees(): Promise<void> {
    const place = await this.#pool?.open()
    if (place !== undefined) this.#trees.shareAt(place)
  }

  /** Closes the library. Sandboxes that run can still read the files of their images. */
  async close(): Promise<void> {
    await this.#pool?.close()
  }

  list(): string[] {
    return this.#records
      .all()
      .flatMap(({ image, isUnfinished, isBelowLines, isBelowDisks }) =>
        isUnfinished || isBelowLines || isBelowDisks ? [] : [image],
      )
  }

  /** Total bytes of all images' files and of all kept layers, as measured by the last sweep. */
  stored(): Readonly<{ images: number; layers: number }> {
    return this.#sweeper.stored
  }

  /** Removes kept layers if the disk fills or the layers are too old. Must be called every few seconds. */
  relieve(): Promise<void> {
    return this.#sweeper.relieve()
  }

  /** Lists the base images of cached lines (`keepBelowLines`), with the sizes of their files. */
  listBelowLines(): { image: string; sizeBytes: number }[] {
    return this.#records
      .all()
      .flatMap(({ image, sizeBytes, isBelowLines }) => (isBelowLines ? [{ image, sizeBytes }] : []))
  }

  find(image: string): Brought | undefined {
    const record = this.#records.read(image)
    return record === undefined || record.isUnfinished ? undefined : asBrought(record)
  }

  rootfsOf(image: string): string | undefined {
    const record = this.#records.read(image)
    if (record === undefined) return undefined
    return join(this.directoryOf(record.tree), 'rootfs')
  }

  /** Returns the directory of a tree. The files of the tree are in its subdirectory `rootfs`. */
  directoryOf(tree: string): string {
    const below = builtInBelow(tree)
    return below === undefined ? dirname(this.#trees.rootfsOf(tree)) : join(this.#records.directory, below)
  }

  /** Returns the name of the tree of the registry image with this digest. */
  treeOfDigest(digest: string): string | undefined {
    return this.#records.all().find((record) => record.digest === digest)?.tree
  }

  hasTree(tree: string): boolean {
    return this.#trees.find(tree) !== undefined
  }

  recordOf(image: string): StoredImage | undefined {
    return this.#records.read(image)
  }

  /** Lists the trees that images use. The tree of a built-in image is named `built-in.2` or similar. */
  treesUsed(): string[] {
    return this.#records.all().map(({ tree }) => tree)
  }

  /** Lists the images that are on this host only as bases of restored disks, and when each was last used. */
  listBelowDisks(): Promise<{ image: string; usedAt: number }[]> {
    const below = this.#records.all().filter(({ isBelowDisks }) => isBelowDisks)
    return Promise.all(below.map(async ({ image }) => ({ image, usedAt: await this.#records.usedAt(image) })))
  }

  markUsed(image: string): Promise<void> {
    return this.#records.markUsed(image)
  }

  /**
   * Makes a base image for restored disks. The image has the files of `tree`. Without `tree`, its files come from the object store.
   * `list` omits the image.
   */
  async bringBelow(
    identity: BaseIdentity,
    tree: string | undefined,
    transfer: Pick<BringRequest, 'signal' | 'onProgress'>,
  ): Promise<void> {
    const image = imageOfBase(identity)
    await this.open()
    if (this.#records.read(image) !== undefined) return
    const { digest, content, config, largeIds } = identity
    if (tree === undefined && content === undefined) throw new TypeError('a base without files cannot be brought')
    const source: LibrarySource = tree === undefined ? { kind: 'content', content: content! } : { kind: 'tree', tree }
    const request: BringRequest = { image, source, maxGiB: Number.MAX_SAFE_INTEGER / GiB, largeIds, ...transfer }
    const container = { ...config, entrypoint: [...config.entrypoint], cmd: [] }
    await this.#bring(request, (made) =>
      this.#record(
        request,
        { ...made, ...(digest === undefined ? {} : { digest }), config: container },
        { isBelowDisks: true },
      ),
    )
  }

  /** Returns the built-in images whose files other images use too. */
  builtInUsed(): string[] {
    return this.#records.all().flatMap(({ tree }) => builtInBelow(tree) ?? [])
  }

  /** Returns the ids of file owners and of users in the definition that are too large for the usual id map (oci/ids.ts). */
  largeIdsOf(image: string): readonly number[] {
    return this.#records.read(image)?.largeIds ?? []
  }

  /** Fetches an image, or returns the image of this name if this host has it. Concurrent calls for one source share the work. */
  async bring(request: BringRequest): Promise<Brought> {
    if (!imageNameShape.test(request.image))
      throw new ImageFailed('failed', 'The name of the image contains characters that are not allowed.')
    await this.open()
    return this.find(request.image) ?? this.#bring(request, (made) => this.#record(request, made))
  }

  /** Fetches an image that a FROM or COPY --from of a definition names. `list` omits the image until `complete` is called. */
  async bringBase(request: BringRequest): Promise<Base> {
    await this.remove(request.image)
    return this.#bring(request, async (made) => {
      const { digest, sizeBytes } = await this.#record(request, made, { isUnfinished: true })
      const files = made.tree
      return { container: made.config, sizeBytes, files, ...(digest === undefined ? {} : { digest }) }
    })
  }

  /**
   * Records the files of `source` as a new image for the cached lines that were built on `source`. The files then stay if `source`
   * is removed. `list` omits the new image.
   */
  async keepBelowLines(
    image: string,
    source: { kind: 'image' | 'built-in'; image: string },
    signal: AbortSignal,
  ): Promise<void> {
    await this.open()
    if (this.#records.read(image) !== undefined) return
    const request: BringRequest = { image, source, maxGiB: Number.MAX_SAFE_INTEGER / GiB, signal }
    await this.#bring(request, (made) => this.#record(request, made, { isBelowLines: true }))
  }

  /** Returns the digest of the image to which a name refers now. Downloads no layer. */
  async resolve(text: string, maxGiB: number, signal: AbortSignal, accounts: Accounts = {}): Promise<string> {
    await this.open()
    const reference = parseReference(text)
    checkMayAsk(reference, this.#parts.registries)
    const scratch = join(this.#scratch, randomBytes(6).toString('hex'))
    try {
      await mkdir(scratch, { mode: 0o700 })
      const making: Making = { maxBytes: Math.floor(maxGiB * GiB), signal, say: () => {}, accounts }
      const resolved = await tellingEvenly(signal, () =>
        this.#lanes.run(() => this.#maker.resolve(reference, making, scratch), { signal }),
      )
      return resolved.digest
    } finally {
      await removeTree(scratch)
    }
  }

  async #bring<T>(request: BringRequest, record: (made: Made) => Promise<T>): Promise<T> {
    const { source, maxGiB, organizationId, logins, signal, onProgress, onLine } = request
    const { limits } = this.#parts
    if (this.#waiting >= limits.mostWaiting)
      throw new ImageFailed('failed', 'This runner is fetching too many images at the same time. Try again later.')
    const onSaid = (said: Said) => ('line' in said ? onLine?.(said.line) : onProgress?.(said.progress))
    const maxBytes = Math.min(limits.largestBytes, Math.floor(maxGiB * GiB))
    this.#waiting++
    try {
      await this.#checkShare(organizationId)
      await this.#sweeper.running
      return await this.#sharing.run(
        JSON.stringify([source, maxBytes, keyOfAccounts({ organizationId, logins })]),
        { onSaid, signal },
        {
          start: (say, cancelled) =>
            tellingEvenly(cancelled, () =>
              this.#lanes.run(
                () =>
                  this.#makeAndHold(source, { maxBytes, say, signal: cancelled, accounts: { organizationId, logins } }),
                { signal: cancelled },
              ),
            ),
          // Records are written one after the other. Each check of an organization's share of the disk therefore includes all
          // earlier images.
          use: (made) => this.#recording.run(() => record(made)),
          release: (made) => this.#release(made),
        },
      )
    } catch (error) {
      if (signal?.aborted && error === signal.reason)
        throw new ImageFailed('cancelled', 'The download of the image was cancelled.', { cause: error })
      if (error instanceof ImageFailed) throw error
      const isFull = error instanceof CommandFailed && /no space left/i.test(error.stderr)
      if (isFull || (error as NodeJS.ErrnoException).code === 'ENOSPC')
        throw new ImageFailed('no-room', 'The disk that the runner keeps images on is full.', { cause: error })
      throw new ImageFailed(
        'failed',
        'The runner could not fetch or unpack the image. The log of the runner has the cause.',
        { cause: error },
      )
    } finally {
      this.#waiting--
      await this.#sweeper.sweep()
    }
  }

  /**
   * Calls `use` with the file at a URL, then removes the file. A URL with a private address is refused, unless the operator has
   * named its host as a registry.
   */
  async withWebFile<T>(request: WebFileRequest, use: (file: WebFile) => Promise<T>): Promise<T> {
    const { url, checksum } = request
    return this.#withFetched(request, (fetching) => fetchWebFile(url, checksum, fetching), use)
  }

  /**
   * Calls `use` with the files of a git repository, then removes the files. A private address is refused, unless the operator has
   * named the repository's host as a registry.
   */
  async withRepository<T>(request: RepositoryRequest, use: (file: RepositoryFile) => Promise<T>): Promise<T> {
    const { repository, checksum } = request
    return this.#withFetched(request, (fetching) => fetchRepository(repository, checksum, fetching), use)
  }

  async #withFetched<File extends { file: FileHandle }, T>(
    { mostBytes, signal }: Pick<WebFileRequest, 'mostBytes' | 'signal'>,
    fetch: (fetching: WebFetching) => Promise<File>,
    use: (file: File) => Promise<T>,
  ): Promise<T> {
    await this.open()
    const scratch = join(this.#scratch, randomBytes(6).toString('hex'))
    const { registries: settings, limits } = this.#parts
    try {
      await mkdir(scratch, { mode: 0o700 })
      const found = await tellingEvenly(signal, () =>
        this.#lanes.run(() => fetch({ settings, limits, scratch, mostBytes, signal }), { signal }),
      )
      try {
        return await use(found)
      } finally {
        await found.file.close()
      }
    } finally {
      await removeTree(scratch)
    }
  }

  /** Removes an image, and its files if no other image uses these files. No sandbox may use the image as its base. */
  async remove(image: string): Promise<void> {
    if (!imageNameShape.test(image)) return
    await this.open()
    await this.#records.remove(image)
    await this.#sweeper.sweep()
  }

  async #makeAndHold(source: LibrarySource, making: Making): Promise<Made> {
    making.signal.throwIfAborted()
    const scratch = join(this.#scratch, randomBytes(6).toString('hex'))
    await mkdir(scratch, { mode: 0o700 })
    const held: (() => void)[] = []
    try {
      if (source.kind === 'registry' || source.kind === 'file') await this.#shareTrees()
      const made = await this.#maker.make(source, making, scratch, {
        tree: (name) => {
          this.#trees.hold(name)
          held.push(() => this.#trees.release(name))
        },
        layer: (name) => {
          this.#blobs.hold(name)
          held.push(() => this.#blobs.release(name))
        },
      })
      // Several callers may wait for this image. The image's files and layers are protected from removal until all these callers
      // have written their records.
      this.#trees.hold(made.tree)
      for (const name of keptNamesOf(made)) this.#blobs.hold(name)
      return made
    } finally {
      for (const release of held) release()
      await removeScratch(scratch)
    }
  }

  #release(made: Made): void {
    this.#trees.release(made.tree)
    for (const name of keptNamesOf(made)) this.#blobs.release(name)
  }

  /** Throws if the organization's images exceed its share of the disk. `more`: an image that is about to be added. */
  async #checkShare(organizationId: string | undefined, more?: Pick<StoredImage, 'tree'>): Promise<void> {
    if (organizationId === undefined) return
    const { blocks, bsize } = await statfs(this.#parts.poolDir)
    const share = blocks * bsize * this.#parts.limits.shareOfOrganization
    const images = this.#records.all().filter((image) => image.organizationId === organizationId)
    const held = this.#trees.bytesOf([...images, ...(more ? [more] : [])].map(({ tree }) => tree))
    if (held < share) return
    throw new ImageFailed(
      'no-room',
      `Image quota exceeded: the images of this organization may have ${asSize(share)} on this runner, and with this one they would have ${asSize(held)} or more. Delete snapshots that are not needed.`,
    )
  }

  async #record(
    { image, organizationId, largeIds: wantedIds = [] }: BringRequest,
    { config, ...made }: Made,
    more: Pick<StoredImage, 'isUnfinished' | 'isBelowLines' | 'isBelowDisks'> = {},
  ): Promise<Brought> {
    await this.#checkShare(organizationId, made)
    const record: StoredImage = {
      image,
      ...more,
      ...(organizationId === undefined ? {} : { organizationId }),
      ...made,
      ...withIds(made.largeIds ?? [], wantedIds),
      config: imageConfigOf(config),
    }
    await this.#records.add(record)
    return asBrought(this.#records.read(image) as StoredImage)
  }

  /**
   * Called when a definition was built. The built image takes the name `image` of its base image. From then on, `list` contains
   * this name.
   */
  async complete(image: string, config: ContainerConfig): Promise<void> {
    const { isUnfinished: _, ...record } = this.#records.read(image) as StoredImage
    await this.#records.replace({ ...record, isBuilt: true, config: imageConfigOf(config) })
  }
}
