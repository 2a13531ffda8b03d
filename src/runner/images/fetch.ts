// Fetches an image of a registry: resolves its name to a digest, then downloads the layers that this host does not have. Reads
// images from files, too.
import { createHash } from 'node:crypto'
import { chown, lstat, mkdir, realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { users } from '#src/kit/confined.ts'
import type { RegistryLogin } from '#src/wire/runner-link.ts'
import type { BlobsOfOrigin } from './blobs.ts'
import { checkRoom, namesBelow, readSmall } from './files.ts'
import { ImageFailed } from './image-failed.ts'
import { asSize, type ImageLimits } from './limits.ts'
import { type Described, type Descriptor, type Manifest, ourEntryOf, parseConfig, parseManifest } from './manifest.ts'
import { formatReference, pinned, type Reference } from './reference.ts'
import type { Skopeo } from './skopeo.ts'

/** An image of a registry, after its name was resolved to a digest. */
export type Resolved = {
  /** Digest to which the name refers now: of a manifest, or of an index that lists a manifest for each platform. */
  digest: string
  /**
   * Reference of the image for this host's platform, with the image's own digest. That digest differs from the field `digest` if
   * the name refers to an index.
   */
  image: Reference
  manifest: Manifest
  described: Described
}

/** An image whose layers are all stored on this host (blobs.ts). */
export type Fetched = { layers: Descriptor[]; described: Described }

export type Fetching = {
  scratch: string
  mostBytes: number
  limits: ImageLimits
  signal: AbortSignal
  /** The organization's credentials for this registry. Absent: the operator's credentials are used. */
  login?: RegistryLogin | undefined
  /** Called with the bytes received so far, and with the number of layers and other files that are complete. */
  onBytes: (bytes: number, complete: number) => void
}

const largestDescriptionBytes = 4 * 1024 * 1024

const digestOf = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

export const resolveReference = async (skopeo: Skopeo, reference: Reference, fetching: Fetching): Promise<Resolved> => {
  const { scratch, limits, signal, mostBytes, login } = fetching
  const asking = {
    scratch,
    signal,
    login,
    timeoutMs: limits.answerTimeoutMs,
    largestFileBytes: largestDescriptionBytes,
  }
  if (login !== undefined) await skopeo.checkRealm(reference, { ...asking, login })
  const manifestOf = (name: Reference, bytes: Buffer) => {
    const digest = digestOf(bytes)
    if ('digest' in name.version && name.version.digest !== digest) throw notWhatItsDigestSays(name)
    return { digest, parsed: parseManifest(bytes.toString()) }
  }
  const answer = await skopeo.manifestAndConfig(reference, asking)
  const named = manifestOf(reference, answer.manifest)
  let ours = named
  if ('index' in named.parsed) {
    const entry = pinned(reference, ourEntryOf(named.parsed.index).digest)
    ours = manifestOf(entry, await skopeo.manifest(entry, asking))
  }
  if ('index' in ours.parsed)
    throw new ImageFailed('unsupported', 'The image is an index of indexes, which is not supported.')

  const image = pinned(reference, ours.digest)
  const { manifest } = ours.parsed
  const isOurs = answer.config !== undefined && digestOf(answer.config) === manifest.config.digest
  const bytes = isOurs && answer.config !== undefined ? answer.config : await skopeo.config(image, asking)
  if (digestOf(bytes) !== manifest.config.digest) throw notWhatItsDigestSays(image)
  const described = parseConfig(bytes.toString())
  checkLayersOf(manifest, described)
  const layerBytes = manifest.layers.reduce((sum, { size }) => sum + size, 0)
  if (layerBytes > mostBytes) throw tooLarge(layerBytes, mostBytes)
  return { digest: named.digest, image, manifest, described }
}

const notWhatItsDigestSays = (name: Reference) =>
  new ImageFailed(
    'corrupted',
    `The image ${formatReference(name)} is damaged: the downloaded data does not match its digest.`,
  )

/** Throws if the numbers of layers and diff ids differ. umoci would ignore a diff id without a layer. */
const checkLayersOf = ({ layers }: Manifest, { diffIds }: Described): void => {
  if (layers.length !== diffIds.length)
    throw new ImageFailed(
      'corrupted',
      `The image is damaged: it has ${layers.length} layers, and its configuration describes ${diffIds.length}.`,
    )
}

const tooLarge = (bytes: number, mostBytes: number) =>
  new ImageFailed(
    'too-large',
    `The image is too large: its layers have ${asSize(bytes)}; at most ${asSize(mostBytes)} is allowed.`,
  )

export const fetchFromRegistry = async (
  skopeo: Skopeo,
  blobs: BlobsOfOrigin,
  { image, manifest }: Resolved,
  fetching: Fetching,
): Promise<Fetched> => {
  const work = await makeWork(fetching.scratch)
  for (const { digest } of manifest.layers) await blobs.offer(digest, work.names)
  await downloadPersistently(fetching, (timeoutMs) =>
    skopeo.download(image, work.directory, { ...askingFor(work, fetching), timeoutMs }),
  )
  const { config, ...fetched } = await adopt(blobs, work, fetching)
  // The configuration has the hashes of the unpacked layers. If the configuration's digest is right, umoci can verify all layers.
  if (config.digest !== manifest.config.digest) throw notWhatItsDigestSays(image)
  return fetched
}

const mostAttempts = 3

/** Retries a download if the connection breaks. Files that are complete are not downloaded again. */
const downloadPersistently = async (
  { limits, signal }: Fetching,
  download: (timeoutMs: number) => Promise<void>,
): Promise<void> => {
  const end = performance.now() + limits.timeoutMs
  for (let attempt = 1; ; attempt++) {
    try {
      return await download(end - performance.now())
    } catch (error) {
      const mayRetry = attempt < mostAttempts && performance.now() + attempt * 1000 < end
      if (!mayRetry || !(error instanceof ImageFailed) || error.failure !== 'unreachable') throw error
      await delay(attempt * 1000, undefined, { signal })
    }
  }
}

/** Reads an image from a directory with an OCI layout, a tar file with an OCI layout, or the output of `docker save`. */
export const fetchFromFile = async (
  skopeo: Pick<Skopeo, 'read'>,
  blobs: BlobsOfOrigin,
  path: string,
  fetching: Fetching,
): Promise<Fetched> => {
  const isDirectory = (await lstat(path)).isDirectory()
  const read = async (transport: string) => {
    const work = await makeWork(join(fetching.scratch, transport))
    await skopeo.read(transport, path, work.directory, askingFor(work, fetching))
    return adopt(blobs, work, fetching)
  }
  if (isDirectory) return read('oci')
  try {
    return await read('docker-archive')
  } catch (error) {
    if (!(error instanceof ImageFailed) || !['failed', 'corrupted'].includes(error.failure)) throw error
    return read('oci-archive')
  }
}

/** Returns the real path of an image file. Throws if the path is not inside `directory`, where the operator puts image files. */
export const fileWithin = async (directory: string | undefined, path: string): Promise<string> => {
  if (directory === undefined)
    throw new ImageFailed(
      'refused',
      'This runner reads no images from files, because its operator has not set ALCOVE_IMAGES_DIR.',
    )
  const root = await realpath(directory).catch(() => undefined)
  const found =
    root === undefined || path.includes('\0') ? undefined : await realpath(join(root, path)).catch(() => undefined)
  // A file outside of the directory gets the same error as a missing file, so that callers do not learn whether that file exists.
  if (root === undefined || found === undefined || !found.startsWith(root + sep))
    throw new ImageFailed('not-found', `There is no "${path.slice(0, 255)}" in the runner's directory for images.`)
  return found
}

type Work = { directory: string; names: string }

/** Makes the directory for a download. The downloading program may write nowhere else. */
const makeWork = async (scratch: string): Promise<Work> => {
  const directory = join(scratch, 'work')
  const names = join(directory, 'blobs/sha256')
  for (const path of [join(directory, 'tmp'), join(directory, 'layout'), names]) await mkdir(path, { recursive: true })
  for (const path of [directory, join(directory, 'tmp'), join(directory, 'layout'), join(directory, 'blobs'), names])
    await chown(path, users.fetcher, users.fetcher)
  return { directory, names }
}

const askingFor = ({ directory, names }: Work, { scratch, mostBytes, limits, signal, login, onBytes }: Fetching) => ({
  scratch,
  signal,
  login,
  timeoutMs: limits.timeoutMs,
  largestFileBytes: mostBytes,
  watch: async () => {
    const parts = await newSizesIn(names)
    const unfinished = await Promise.all([join(directory, 'layout'), join(directory, 'tmp')].map(newSizesIn))
    const sum = [...parts, ...unfinished.flat()].reduce((total, size) => total + size, 0)
    if (sum > mostBytes) throw tooLarge(sum, mostBytes)
    await checkRoom(directory, limits)
    onBytes(sum, parts.length)
  },
})

/**
 * Sizes of the files that this download has written. Leaves out files with several hard links: they are layers that were stored
 * before.
 */
const newSizesIn = async (directory: string): Promise<number[]> => {
  const names = await namesBelow(directory).catch(() => [])
  const sizes = names.map(async (name) => {
    const stats = await lstat(join(directory, name)).catch(() => undefined)
    return stats?.isFile() && stats.nlink === 1 ? [stats.size] : []
  })
  return (await Promise.all(sizes)).flat()
}

/** Verifies the files that a download has written, and moves the downloaded layers to the stored layers (blobs.ts). */
const adopt = async (
  blobs: BlobsOfOrigin,
  { directory }: Work,
  { mostBytes }: Fetching,
): Promise<Fetched & { config: Descriptor }> => {
  const real = await realpath(directory)
  const small = (path: string) => readSmall(join(real, path), largestDescriptionBytes)
  const textOf = async (digest: string) => {
    const bytes = await small(`blobs/sha256/${digest.slice('sha256:'.length)}`)
    if (digestOf(bytes) !== digest)
      throw new ImageFailed('corrupted', `The image is damaged: a part of it does not match its digest (${digest}).`)
    return bytes.toString()
  }
  const index = parseManifest((await small('layout/index.json')).toString())
  const entry = 'index' in index ? index.index[0] : undefined
  if (entry === undefined) throw new ImageFailed('corrupted', 'The image is damaged: it has no manifest.')
  const manifest = { digest: entry.digest, size: entry.size }
  const parsed = parseManifest(await textOf(manifest.digest))
  if (!('manifest' in parsed))
    throw new ImageFailed('unsupported', 'The image is an index of indexes, which is not supported.')
  const { config, layers } = parsed.manifest
  const described = parseConfig(await textOf(config.digest))
  checkLayersOf(parsed.manifest, described)
  const layerBytes = layers.reduce((sum, { size }) => sum + size, 0)
  if (layerBytes > mostBytes) throw tooLarge(layerBytes, mostBytes)
  for (const { digest } of layers) await blobs.take(digest, join(real, 'blobs/sha256'))
  return { layers, described, config }
}
