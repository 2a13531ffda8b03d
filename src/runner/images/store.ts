// The images of one runner: directories under `<poolDir>/images`, each complete or not there at all.
//
// An image is immutable: sandboxes have its rootfs as their lowest layer for as long as they live. It is made under a name
// that does not count and renamed once it is whole and on disk, so neither a kill nor a power cut leaves half of one.
// The built-in image is made here; images that are brought are in `library.ts`.
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
  /** The names of the images that are whole. */
  list(): string[]
  /** Root directory of the image, ids shifted; undefined if there is no such image. */
  rootfsOf(image: string): string | undefined
  describe(image: string): ImageDescription | undefined
  /** Makes the built-in image unless it is there: from the machine's cache, or by building it. */
  ensureDefault(): Promise<void>
  /** The image if it was brought; undefined for any other. */
  find(image: string): Brought | undefined
  /** What an image says of the sandboxes made from it; undefined if there is no such image. */
  configOf(image: string): ImageConfig | undefined
  /** Bytes of the image's files; undefined where that is not known. */
  sizeOf(image: string): number | undefined
  /** Throws `ImageFailed`, whose message is for the caller. It may be called twice, also at the same time. */
  bring(request: BringRequest): Promise<Brought>
  /** What a definition begins with, under a name that counts for nothing until it is complete. */
  bringBase(request: BringRequest): Promise<Base>
  withWebFile: Library['withWebFile']
  /** The definition that begins with it has been carried out. */
  complete(image: string, config: ContainerConfig): Promise<void>
  /** An image that was brought; fine when it is gone. No sandbox may have it as its base any more. */
  remove(image: string): Promise<void>
}

export type ImageStoreOptions = {
  poolDir: string
  cacheDir: string
  log: Logger
  onProgress: (progress: Progress) => void
  /** Tests hand in smaller ones. */
  recipe?: Recipe
  /** Where operators put images as files; absent: there are none. */
  filesDir?: string | undefined
  /** Registries, as host:port, that are spoken to without encryption. */
  plainRegistries?: readonly string[]
  /** With credentials for registries, in the form of containers-auth.json(5). */
  registryAuthFile?: string | undefined
  /** Registries that images may come from; absent: any. */
  registries?: readonly string[] | undefined
  /** Registries that may be elsewhere than on the public Internet. */
  privateRegistries?: readonly string[]
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
      publicNetwork: options.publicNetwork,
    },
    limits: options.limits ?? standardLimits,
    log,
  })

  const describe = (image: string): ImageDescription | undefined => {
    if (!imageNameShape.test(image)) return undefined
    try {
      return (JSON.parse(readFileSync(join(images, image, 'image.json'), 'utf8')) as StoredImage).description
    } catch {
      return undefined
    }
  }

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
  /** Nobody waits for it: until then it counts for nothing in the size of what is made of it. */
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
    sizeOf: (image) => (image === defaultImage ? defaultBytes : library.find(image)?.sizeBytes),
    bring: async (request) => {
      if (request.image === defaultImage) throw new TypeError('the built-in image is not brought')
      return library.bring(request)
    },
    bringBase: (request) => {
      const { source } = request
      const isBuiltIn = source.kind === 'image' && describe(source.image) !== undefined
      return library.bringBase(isBuiltIn ? { ...request, source: { kind: 'built-in' } } : request)
    },
    withWebFile: (request, use) => library.withWebFile(request, use),
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
  // Until it is unpacked, so that nobody takes the file away meanwhile.
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

/** zstd's own checksum and tar's end mark tell whether the file is whole. */
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
