// Manages the images of one runner, which are directories below `<poolDir>/images`.
//
// An image never changes. It is made under a temporary name and renamed when it is synced, so a power cut leaves no incomplete
// image. This file makes the built-in image; `library.ts` handles fetched images.
import { randomBytes } from 'node:crypto'
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Lock, tryLock, waitForLock } from '#src/kit/lock.ts'
import type { Logger } from '#src/kit/log.ts'
import { removeTree } from '#src/kit/remove-tree.ts'
import { runCommand } from '#src/kit/run-command.ts'
import type { ImageConfig, Progress } from '#src/wire/runner-link.ts'
import type { BaseTravel } from './base-content.ts'
import { Bases } from './bases.ts'
import { buildImage, leftOfBuild, unpackingInto } from './build.ts'
import { bytesBelow } from './files.ts'
import { builtInImage, Generations, isGeneration, nextGeneration, type StoredDefault } from './generations.ts'
import type { GivenBack } from './given-back.ts'
import type { Brought } from './image-records.ts'
import { type Base, type BringRequest, Library } from './library.ts'
import { type ImageLimits, standardLimits } from './limits.ts'
import type { ContainerConfig } from './manifest.ts'
import { defaultRecipe, type ImageDescription, type Recipe, recipeHash } from './recipe.ts'
import type { RegistrySettings } from './skopeo.ts'

export type ImageStore = {
  /** Names of the complete images. */
  list(): string[]
  /** Directory of the image's files. The owner of each file is the user id in the image plus `uidBase`. */
  rootfsOf(image: string): string | undefined
  describe(image: string): ImageDescription | undefined
  /** Mounts the file system of the fetched images' files, if it exists. Must be called before a sandbox starts. */
  openTrees(): Promise<void>
  close(): Promise<void>
  /** Makes the built-in image unless it exists. Takes it from the machine's cache, or builds it. */
  ensureDefault(): Promise<void>
  /**
   * Makes a new version of the built-in image. Uses the cached image file if it is not older than `notBefore`. The current version
   * stays in use until the new version is complete.
   */
  renewDefault(notBefore: Date, onProgress: (progress: Progress) => void): Promise<void>
  /** When the newest built-in image was made, and whether it has the current recipe. Undefined if there is no built-in image. */
  defaultAge(): { madeAt: Date; isOfThisRecipe: boolean } | undefined
  /** Removes replaced versions of the built-in image. `inUse`: the base images of disks, which stay. */
  removeReplaced(inUse: ReadonlySet<string>): Promise<string[]>
  /** Names of the base images on this host whose files have been hashed (bases.ts). */
  bases(): string[]
  identityOf: Bases['identityOf']
  withBase: Bases['with']
  /** Returns the base image for a new disk: `image` itself or, for the built-in image, its newest version. */
  newest(image: string): string
  /** Description of a fetched image; undefined for any other image. */
  find(image: string): Brought | undefined
  /** The configuration for sandboxes of an image; undefined if there is no such image. */
  configOf(image: string): ImageConfig | undefined
  /** User ids that the image needs and that are too large for the usual user id map of a sandbox (oci/ids.ts). */
  largeIdsOf(image: string): readonly number[]
  /** Bytes of the image's files; undefined if unknown. */
  sizeOf(image: string): number | undefined
  /**
   * Fetches an image. If that fails, throws `ImageFailed`, whose message is for the caller. Repeated and concurrent calls for one
   * image fetch it only once.
   */
  bring(request: BringRequest): Promise<Brought>
  /** Fetches the base image of a definition. Lists of images omit this base image until `complete` is called. */
  bringBase(request: BringRequest): Promise<Base>
  withWebFile: Library['withWebFile']
  withRepository: Library['withRepository']
  resolve: Library['resolve']
  listBelowLines: Library['listBelowLines']
  /**
   * Adds the image `image`, which has the files of the image `of`. The files then stay if `of` is removed. Lists of images omit
   * `image`.
   */
  keepBelowLines(image: string, of: string, signal: AbortSignal): Promise<void>
  /** Total bytes of all images' files and of all kept layers, as measured by the last sweep. */
  stored: Library['stored']
  /** Removes kept layers if the disk fills or the layers are too old. Must be called every few seconds. */
  relieve: Library['relieve']
  /**
   * Called when a definition was built. The built image takes the name `image` of its base image. From then on, `list` contains
   * this name.
   */
  complete(image: string, config: ContainerConfig): Promise<void>
  /** Removes a fetched image. No sandbox may use the image as its base. No error if the image does not exist. */
  remove(image: string): Promise<void>
}

export type ImageStoreOptions = {
  poolDir: string
  cacheDir: string
  log: Logger
  onProgress: (progress: Progress) => void
  /** The recipe of the built-in image. Tests pass smaller recipes. Default: the recipe for this host. */
  recipe?: Recipe
  /**
   * Directory where operators put files that contain an image, such as files that `docker save` writes. Absent: there is no such
   * directory.
   */
  filesDir?: string | undefined
  /** Registries (host:port) that are contacted without encryption. */
  plainRegistries?: readonly string[]
  /** File with credentials for registries, in the format of containers-auth.json(5). */
  registryAuthFile?: string | undefined
  /** Registries that images may come from. Absent: any. */
  registries?: readonly string[] | undefined
  /** Registries that may have private addresses. */
  privateRegistries?: readonly string[]
  mirrors?: RegistrySettings['mirrors']
  publicNetwork: RegistrySettings['publicNetwork']
  limits?: ImageLimits
  /** Whether fetched images share layers, which needs btrfs on this host. */
  sharesLayers?: boolean
  /** Counts the bytes of removed images and layers, by reason of removal. */
  givenBack?: GivenBack
  now?: () => number
  build?: typeof buildImage
  /**
   * Functions of the object store that base images need. Absent: the files of images are neither hashed nor fetched from a store.
   */
  travel?: BaseTravel | undefined
  /** Called when files of a base image were hashed or fetched, or when `removeReplaced` has removed an image. */
  onBases?: () => void
}

const buildTimeoutMs = 20 * 60_000

export const openImageStore = (options: ImageStoreOptions): ImageStore => {
  const { poolDir, log, onProgress, recipe = defaultRecipe(), now = Date.now } = options
  const images = join(poolDir, 'images')
  const generations = new Generations(images)
  const library = new Library({
    poolDir,
    filesDir: options.filesDir,
    registries: {
      plainRegistries: options.plainRegistries ?? [],
      authFile: options.registryAuthFile,
      registries: options.registries,
      privateRegistries: options.privateRegistries,
      mirrors: options.mirrors,
      publicNetwork: options.publicNetwork,
    },
    limits: options.limits ?? standardLimits,
    givenBack: options.givenBack,
    sharesLayers: options.sharesLayers,
    travel: options.travel,
    log,
  })

  const describe = (image: string): ImageDescription | undefined =>
    isGeneration(image) ? generations.read(generations.resolve(image) ?? image)?.description : undefined

  const makeDefault = async (image: string, making: MakingDefault) => {
    const started = performance.now()
    const unpacked = join(images, `.${image}.${randomBytes(4).toString('hex')}`)
    try {
      await unpackDefault(options, recipe, join(unpacked, 'rootfs'), making)
      const stored: StoredDefault = {
        recipe: recipeHash(recipe),
        description: recipe.description,
        madeAt: new Date(now()).toISOString(),
      }
      await writeFile(join(unpacked, 'image.json'), JSON.stringify(stored, null, 2))
      await runCommand(['sync', '--file-system', unpacked], { timeoutMs: 300_000 })
      await rename(unpacked, join(images, image))
    } finally {
      await rm(unpacked, { recursive: true, force: true })
    }
    generations.changed()
    making.onProgress({ step: 'the default image is ready', percent: 100 })
    log.info({ image, seconds: Math.round((performance.now() - started) / 1000) }, 'the default image is ready')
  }

  const ensureDefault = async () => {
    await library.open()
    if (generations.current() === undefined) await makeDefault(builtInImage, { onProgress })
    else await removeLeftOfBuild(options, recipe)
  }

  const sizes = new Map<string, number>()
  /**
   * Measures the default image in the background. Until the measurement ends, an image that is built on it counts its size as 0.
   */
  const measureDefault = async () => {
    try {
      for (const image of generations.list())
        if (!sizes.has(image)) sizes.set(image, await bytesBelow(generations.rootfsOf(image)))
    } catch (err) {
      log.warn({ err }, 'the default image could not be measured')
    }
  }

  const configOf = (image: string): ImageConfig | undefined => {
    const description = describe(image)
    return description === undefined ? library.find(image)?.config : asConfig(description)
  }

  const { travel, onBases = () => {} } = options
  const bases = new Bases({ generations, library, travel, configOf, onChange: onBases, now })

  let ensuring: Promise<void> | undefined
  return {
    list: () => [...(generations.current() === undefined ? [] : [builtInImage]), ...library.list()],
    rootfsOf: (image) => {
      if (!isGeneration(image)) return library.rootfsOf(image)
      const found = generations.resolve(image)
      return found && generations.rootfsOf(found)
    },
    newest: (image) => (image === builtInImage ? (generations.current() ?? image) : image),
    renewDefault: async (notBefore, tell) => {
      await library.open()
      await makeDefault(nextGeneration(generations.current()), { onProgress: tell, notBefore, isInBackground: true })
      void measureDefault()
    },
    defaultAge: () => {
      const current = generations.current()
      if (current === undefined) return undefined
      const isOfThisRecipe = generations.read(current)?.recipe === recipeHash(recipe)
      return { madeAt: generations.madeAt(current), isOfThisRecipe }
    },
    removeReplaced: async (inUse) => {
      const unused = await bases.removeUnused(inUse)
      const needed = new Set([...inUse, ...library.builtInUsed()])
      const removed = await generations.removeUnneeded(needed, new Date(now()))
      for (const image of removed) {
        options.givenBack?.add('images', 'unused', sizes.get(image) ?? 0)
        sizes.delete(image)
      }
      if (unused.length + removed.length > 0) onBases()
      return [...removed, ...unused]
    },
    find: (image) => library.find(image),
    configOf,
    bases: () => bases.names(),
    identityOf: (image) => bases.identityOf(image),
    withBase: (identity, transfer, use) => bases.with(identity, transfer, use),
    largeIdsOf: (image) => library.largeIdsOf(image),
    sizeOf: (image) =>
      isGeneration(image) ? sizes.get(generations.resolve(image) ?? image) : library.find(image)?.sizeBytes,
    bring: async (request) => {
      if (isGeneration(request.image)) throw new TypeError('the built-in image is not brought')
      return library.bring(request)
    },
    bringBase: async (request) => {
      const { source } = request
      const found = source.kind === 'image' && isGeneration(source.image) && generations.resolve(source.image)
      if (!found) return library.bringBase(request)
      const base = await library.bringBase({ ...request, source: { kind: 'built-in', image: found } })
      const { recipe: ofImage, madeAt = '' } = generations.read(found) ?? {}
      return { ...base, files: `${base.files} ${ofImage} ${madeAt}` }
    },
    withWebFile: (request, use) => library.withWebFile(request, use),
    withRepository: (request, use) => library.withRepository(request, use),
    openTrees: () => library.openTrees(),
    close: () => library.close(),
    resolve: (text, maxGiB, signal, accounts) => library.resolve(text, maxGiB, signal, accounts),
    listBelowLines: () => library.listBelowLines(),
    stored: () => {
      const { images: brought, layers } = library.stored()
      return { images: [...sizes.values()].reduce((sum, size) => sum + size, brought), layers }
    },
    relieve: () => library.relieve(),
    keepBelowLines: (image, of, signal) =>
      library.keepBelowLines(
        image,
        isGeneration(of) ? { kind: 'built-in', image: generations.resolve(of) ?? of } : { kind: 'image', image: of },
        signal,
      ),
    complete: (image, config) => library.complete(image, config),
    remove: async (image) => {
      if (isGeneration(image)) throw new TypeError('the built-in image is not removed')
      await library.remove(image)
    },
    describe,
    ensureDefault: () => {
      ensuring ??= ensureDefault().finally(() => {
        void measureDefault()
        ensuring = undefined
      })
      return ensuring
    },
  }
}

const asConfig = ({ user, workDir = '/', env, entrypoint = [] }: ImageDescription): ImageConfig => ({
  entrypoint,
  env,
  user,
  workdir: workDir,
})

type MakingDefault = {
  onProgress: (progress: Progress) => void
  /** A file in the cache of built images is used only if it is not older than this time. */
  notBefore?: Date
  isInBackground?: boolean
}

const cachedFile = (cacheDir: string, recipe: Recipe) => join(cacheDir, `${builtInImage}-${recipeHash(recipe)}.tar.zst`)

/**
 * Removes files that a killed build of the default image left. If another runner holds the build's lock, removes the files when the
 * lock is free, without delaying the caller.
 */
const removeLeftOfBuild = async ({ cacheDir, log }: ImageStoreOptions, recipe: Recipe) => {
  const cached = cachedFile(cacheDir, recipe)
  const left = [`${cached}.partial`, ...leftOfBuild(`${cached}.work`)]
  if (!(await Promise.all(left.map(exists))).includes(true)) return
  const remove = async (lock: Lock) => {
    using _lock = lock
    for (const path of left) await removeTree(path, { tries: 10 })
  }
  const lock = tryLock(`${cached}.lock`)
  if (lock !== undefined) return remove(lock)
  void waitForLock(`${cached}.lock`, { timeoutMs: buildTimeoutMs })
    .then(remove)
    .catch((err: unknown) => log.warn({ err }, 'what a build left could not be removed'))
}

const unpackDefault = async (options: ImageStoreOptions, recipe: Recipe, rootfs: string, making: MakingDefault) => {
  const { cacheDir, log } = options
  const { onProgress, notBefore = new Date(0) } = making
  await mkdir(cacheDir, { recursive: true, mode: 0o755 })
  const cached = cachedFile(cacheDir, recipe)
  // The lock is held until the cached file is unpacked, so that no other runner of the host removes the file meanwhile.
  using _lock = await waitForLock(`${cached}.lock`, {
    timeoutMs: buildTimeoutMs,
    onWait: () => onProgress({ step: 'waiting for another server that builds the same image', percent: 0 }),
  })

  if (await isNewerThan(cached, notBefore)) {
    try {
      onProgress({ step: 'unpacking the default image', percent: 96 })
      return await unpack(cached, rootfs)
    } catch (error) {
      log.warn({ err: error, cached }, 'the cached image is damaged: building it anew')
      await rm(cached, { force: true })
    }
  }
  await buildInto(cached, rootfs, options, recipe, making)
}

const buildInto = async (
  cached: string,
  rootfs: string,
  options: ImageStoreOptions,
  recipe: Recipe,
  making: MakingDefault,
) => {
  const { build = buildImage, log } = options
  const { onProgress, isInBackground = false } = making
  const target = `${cached}.partial`
  await makeEmpty(rootfs)
  try {
    await build({
      recipe,
      target,
      root: rootfs,
      workDir: `${cached}.work`,
      onProgress,
      onLack: (lack) => log.warn(lack),
      timeoutMs: buildTimeoutMs,
      isInBackground,
    })
    await runCommand(['sync', target], { timeoutMs: 300_000 })
    await rename(target, cached)
  } finally {
    await rm(target, { force: true })
  }
}

/**
 * Empties a directory. After a failed unpacking, tar may still write into the directory for a moment, so the removal is retried.
 */
const makeEmpty = async (directory: string) => {
  await rm(directory, { recursive: true, force: true, maxRetries: 10 })
  await mkdir(directory, { recursive: true, mode: 0o755 })
}

/** Unpacks an image file. If the file is incomplete, the unpacking fails, because zstd's checksum or tar's end mark is missing. */
const unpack = async (archive: string, rootfs: string) => {
  await makeEmpty(rootfs)
  await runCommand(['tar', '--use-compress-program=zstd', '--file', archive, ...unpackingInto(rootfs)], {
    timeoutMs: 600_000,
  })
}

const exists = (path: string) => isNewerThan(path, new Date(0))

const isNewerThan = (path: string, time: Date) =>
  stat(path).then(
    ({ mtime }) => mtime >= time,
    () => false,
  )
