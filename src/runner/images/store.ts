// The images of one runner: directories under `<poolDir>/images`, each complete or absent.
//
// An image is immutable, because its files are the lowest layer of sandboxes for their whole life. It is made under a temporary
// name and renamed once it is whole and synced, so neither a kill nor a power cut leaves half an image. The built-in image is
// made here; `library.ts` handles fetched images.
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { waitForLock } from '#src/kit/lock.ts'
import type { Logger } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'
import type { ImageConfig, Progress } from '#src/wire/runner-link.ts'
import { buildImage } from './build.ts'
import { bytesBelow } from './files.ts'
import { type Base, type BringRequest, type Brought, builtInImage, imageNameShape, Library } from './library.ts'
import { type ImageLimits, standardLimits } from './limits.ts'
import type { ContainerConfig } from './manifest.ts'
import { defaultRecipe, type ImageDescription, type Recipe, recipeHash } from './recipe.ts'
import type { RegistrySettings } from './skopeo.ts'

export type ImageStore = {
  /** Names of the complete images. */
  list(): string[]
  /** Root directory of the image, with shifted ids; undefined if there is no such image. */
  rootfsOf(image: string): string | undefined
  describe(image: string): ImageDescription | undefined
  /** Makes the built-in image unless it exists: from the machine's cache, or by building it. */
  ensureDefault(): Promise<void>
  /** The image if it was fetched; undefined for any other. */
  find(image: string): Brought | undefined
  /** The configuration for sandboxes of an image; undefined if there is no such image. */
  configOf(image: string): ImageConfig | undefined
  /** Large ids that its users have (oci/ids.ts). */
  largeIdsOf(image: string): readonly number[]
  /** Bytes of the image's files; undefined if unknown. */
  sizeOf(image: string): number | undefined
  /** Fetches an image. Throws `ImageFailed`, whose message is for the caller. May be called twice, also concurrently. */
  bring(request: BringRequest): Promise<Brought>
  /** Fetches the base of a definition. It is not listed until it is complete. */
  bringBase(request: BringRequest): Promise<Base>
  withWebFile: Library['withWebFile']
  resolve: Library['resolve']
  listBelowLines: Library['listBelowLines']
  /** Keeps the files of an image that is here under another name, which is not listed. Fine where it is kept already. */
  keepBelowLines(image: string, of: string): Promise<void>
  /** Completes a base after its definition was built. */
  complete(image: string, config: ContainerConfig): Promise<void>
  /** Removes a fetched image. No error if it is gone. No sandbox may use it as base any more. */
  remove(image: string): Promise<void>
}

export type ImageStoreOptions = {
  poolDir: string
  cacheDir: string
  log: Logger
  onProgress: (progress: Progress) => void
  /** Tests pass smaller recipes. */
  recipe?: Recipe
  /** Directory where operators put image files. Absent: none. */
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
  build?: typeof buildImage
}

const defaultImage = builtInImage

const buildTimeoutMs = 20 * 60_000

export const openImageStore = (options: ImageStoreOptions): ImageStore => {
  const { poolDir, log, onProgress, recipe = defaultRecipe() } = options
  const images = join(poolDir, 'images')
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
    log,
  })

  const read = (image: string): Partial<StoredImage> => {
    if (!imageNameShape.test(image)) return {}
    try {
      return JSON.parse(readFileSync(join(images, image, 'image.json'), 'utf8')) as Partial<StoredImage>
    } catch {
      return {}
    }
  }
  const describe = (image: string): ImageDescription | undefined => read(image).description

  const ensureDefault = async () => {
    await library.open()
    if (describe(defaultImage) !== undefined) return
    const started = performance.now()
    const unpacked = join(images, `.${defaultImage}.${randomBytes(4).toString('hex')}`)
    try {
      await unpackDefault(options, recipe, join(unpacked, 'rootfs'))
      const stored: StoredImage = { recipe: recipeHash(recipe), description: recipe.description }
      await writeFile(join(unpacked, 'image.json'), JSON.stringify(stored, null, 2))
      await runCommand(['sync', '--file-system', unpacked], { timeoutMs: 300_000 })
      await rename(unpacked, join(images, defaultImage))
    } finally {
      await rm(unpacked, { recursive: true, force: true })
    }
    onProgress({ step: 'the default image is ready', percent: 100 })
    log.info({ seconds: Math.round((performance.now() - started) / 1000) }, 'the default image is ready')
  }

  let defaultBytes: number | undefined
  /** Not awaited: until it is measured, the default image counts 0 in the size of images made from it. */
  const measureDefault = async () => {
    try {
      defaultBytes ??= await bytesBelow(join(images, defaultImage, 'rootfs'))
    } catch (err) {
      log.warn({ err }, 'the default image could not be measured')
    }
  }

  let ensuring: Promise<void> | undefined
  return {
    list: () => [...namesIn(images).filter((name) => describe(name) !== undefined), ...library.list()],
    rootfsOf: (image) => (describe(image) === undefined ? library.rootfsOf(image) : join(images, image, 'rootfs')),
    find: (image) => library.find(image),
    configOf: (image) => {
      const description = describe(image)
      return description === undefined ? library.find(image)?.config : asConfig(description)
    },
    largeIdsOf: (image) => library.largeIdsOf(image),
    sizeOf: (image) => (image === defaultImage ? defaultBytes : library.find(image)?.sizeBytes),
    bring: async (request) => {
      if (request.image === defaultImage) throw new TypeError('the built-in image is not brought')
      return library.bring(request)
    },
    bringBase: async (request) => {
      const { source } = request
      const isBuiltIn = source.kind === 'image' && describe(source.image) !== undefined
      const base = await library.bringBase(isBuiltIn ? { ...request, source: { kind: 'built-in' } } : request)
      return isBuiltIn ? { ...base, files: `${base.files} ${read(source.image).recipe}` } : base
    },
    withWebFile: (request, use) => library.withWebFile(request, use),
    resolve: (text, maxGiB, signal) => library.resolve(text, maxGiB, signal),
    listBelowLines: () => library.listBelowLines(),
    keepBelowLines: (image, of) =>
      library.keepBelowLines(image, describe(of) === undefined ? { kind: 'image', image: of } : { kind: 'built-in' }),
    complete: (image, config) => library.complete(image, config),
    remove: async (image) => {
      if (image === defaultImage) throw new TypeError('the built-in image is not removed')
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

type StoredImage = { recipe: string; description: ImageDescription }

const namesIn = (directory: string) => {
  try {
    return readdirSync(directory)
      .filter((name) => imageNameShape.test(name))
      .sort()
  } catch {
    return []
  }
}

const unpackDefault = async (options: ImageStoreOptions, recipe: Recipe, rootfs: string) => {
  const { cacheDir, log, onProgress } = options
  await mkdir(cacheDir, { recursive: true, mode: 0o755 })
  const cached = join(cacheDir, `${defaultImage}-${recipeHash(recipe)}.tar.zst`)
  // The lock is held until the file is unpacked, so that nobody removes the file meanwhile.
  using _lock = await waitForLock(`${cached}.lock`, {
    timeoutMs: buildTimeoutMs,
    onWait: () => onProgress({ step: 'waiting for another server that builds the same image', percent: 0 }),
  })

  if (await exists(cached)) {
    try {
      onProgress({ step: 'unpacking the default image', percent: 96 })
      return await unpack(cached, rootfs)
    } catch (error) {
      log.warn({ err: error, cached }, 'the cached image is damaged: building it anew')
      await rm(cached, { force: true })
    }
  }
  await buildInto(cached, options, recipe)
  onProgress({ step: 'unpacking the default image', percent: 96 })
  await unpack(cached, rootfs)
}

const buildInto = async (cached: string, { onProgress, build = buildImage }: ImageStoreOptions, recipe: Recipe) => {
  const target = `${cached}.partial`
  try {
    await build({ recipe, target, workDir: `${cached}.work`, onProgress, timeoutMs: buildTimeoutMs })
    await runCommand(['sync', target], { timeoutMs: 300_000 })
    await rename(target, cached)
  } finally {
    await rm(target, { force: true })
  }
}

/** zstd's checksum and tar's end mark show whether the file is whole. */
const unpack = async (archive: string, rootfs: string) => {
  await rm(rootfs, { recursive: true, force: true, maxRetries: 10 })
  await mkdir(rootfs, { recursive: true, mode: 0o755 })
  const options = ['--extract', '--numeric-owner', '--preserve-permissions', '--xattrs', '--xattrs-include=*']
  await runCommand(['tar', ...options, '--use-compress-program=zstd', '--file', archive, '--directory', rootfs], {
    timeoutMs: 600_000,
  })
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )
