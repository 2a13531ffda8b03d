// Makes the files of an image from an image of a registry, an operator's file, an empty directory, or another image.
import type { Logger } from '#src/kit/log.ts'
import { FairQueue } from '#src/kit/queue.ts'
import { accountFor } from '#src/kit/registry-address.ts'
import type { ImageSource, Progress, RegistryLogin } from '#src/wire/runner-link.ts'
import { type BaseTravel, writeContent } from './base-content.ts'
import { type BaseContent, treeOfContent } from './base-identity.ts'
import type { Blobs } from './blobs.ts'
import { emptyConfig } from './definition/plan.ts'
import { createDownloadLines } from './download-lines.ts'
import {
  type Fetched,
  type Fetching,
  fetchFromFile,
  fetchFromRegistry,
  fileWithin,
  type Resolved,
  resolveReference,
} from './fetch.ts'
import { bytesBelow, checkRoom } from './files.ts'
import { builtInImage } from './generations.ts'
import { ImageFailed } from './image-failed.ts'
import type { ImageRecords, StoredImage } from './image-records.ts'
import type { Interrupted } from './interrupted.ts'
import { asSize, type ImageLimits } from './limits.ts'
import { type ContainerConfig, type Described, ownArchitecture } from './manifest.ts'
import { mirrored } from './mirrors.ts'
import { formatReference, originOf, parseReference, type Reference } from './reference.ts'
import { checkIsPublic, checkMayAsk, type RegistrySettings, Skopeo } from './skopeo.ts'
import { makeRoot, TreeMaker, treeOfNothing } from './tree-maker.ts'
import type { Trees } from './trees.ts'
import { tooLarge } from './unpack.ts'

/** `scratch`: no files. `image`: the files of another image on this host. `built-in`: the files of the built-in image. */
export type LibrarySource =
  | ImageSource
  | { kind: 'scratch' }
  | { kind: 'image'; image: string }
  | { kind: 'built-in'; image: string }
  | { kind: 'tree'; tree: string }
  | { kind: 'content'; content: BaseContent }

/** The files and configuration of a made image. The image has no name and no record yet. */
export type Made = Omit<StoredImage, 'image' | 'config'> & { config: ContainerConfig }

/** The layers of an image. The files that they make may be on this host already. If they are not, `fetch` downloads the layers. */
type Layers = { origin: string; described: Described; layers: string[]; fetch: () => Promise<Fetched> }

export type Said = { progress: Progress } | { line: string }

/**
 * The organization that requests an image, and its credentials for registries. Requests of other organizations do not use these
 * credentials.
 */
export type Accounts = { organizationId?: string | undefined; logins?: readonly RegistryLogin[] | undefined }

/**
 * `maxBytes` limits the packed layers and, separately, the unpacked files. `say` gets the progress and the lines of the build log.
 */
export type Making = { maxBytes: number; signal: AbortSignal; say: (said: Said) => void; accounts?: Accounts }

/** Common origin of all image files in the operator's directory: a caller who may use one of these files may use all. */
const originOfFiles = 'files'
const originOfNothing = 'scratch'
/**
 * Origin of the base images of restored disks (`bringBelow`). Images of one origin may share trees (directories of files). No
 * pulled image has this origin, so these base images give no pulled image the right to use a tree.
 */
const originOfBases = 'bases'

/** Returns the name of the tree with a built-in image's files. Example: `built-in.2` for the image `default.2`. */
export const builtInTree = (image: string) => image.replace(builtInImage, 'built-in')
export const builtInBelow = (tree: string) =>
  /^built-in(\.\d+)?$/.test(tree) ? tree.replace('built-in', builtInImage) : undefined

const nothingOf = (origin: string) => ({
  ...{ origin, sizeBytes: 0, layers: [] as string[], architecture: ownArchitecture, config: emptyConfig() },
})

/** Protects a directory of files (`tree`) or a layer from removal until the image has a record. */
export type Hold = { tree: (name: string) => void; layer: (name: string) => void }

type MakerParts = {
  records: ImageRecords
  trees: Trees
  blobs: Blobs
  interrupted: Interrupted
  registries: RegistrySettings
  /** Directory where operators put files that contain an image, such as files that `docker save` writes. */
  filesDir: string | undefined
  limits: ImageLimits
  log: Logger
  /** Fetches the files of base images from the object store. Absent: this host has no object store. */
  travel?: BaseTravel | undefined
}

const loginFor = (reference: Reference, { accounts: { organizationId, logins = [] } = {} }: Making) =>
  organizationId === undefined ? undefined : accountFor(reference, logins)

export class ImageMaker {
  readonly #parts: MakerParts
  readonly #skopeo: Skopeo
  readonly #treeMaker: TreeMaker
  /** Images are unpacked one after the other. Two images at once could fill a disk that has space for one image. */
  readonly #unpacking = new FairQueue({ atOnce: 1 })

  constructor(parts: MakerParts) {
    this.#parts = parts
    this.#treeMaker = new TreeMaker(parts)
    this.#skopeo = new Skopeo({ ...parts.registries, answerTimeoutMs: parts.limits.answerTimeoutMs })
  }

  /**
   * Makes the files of an image. `scratch`: directory for temporary files. `hold` is called with each tree and layer before the
   * image uses it.
   */
  async make(source: LibrarySource, making: Making, scratch: string, hold: Hold): Promise<Made> {
    switch (source.kind) {
      case 'registry':
        return this.#fromRegistry(source.reference, making, scratch, hold)
      case 'file':
        return this.#fromFile(source.path, making, scratch, hold)
      case 'scratch':
        return this.#fromNothing(making, hold)
      case 'image':
        return this.#fromOther(source.image, hold)
      case 'built-in':
        return { ...nothingOf('built-in'), tree: builtInTree(source.image) }
      case 'tree':
        return this.#fromTree(source.tree, hold)
      case 'content':
        return this.#fromStore(source.content, making, hold)
      case 'definition':
        throw new ImageFailed('unsupported', 'A definition is not built here.')
      case 'sandbox':
      case 'store':
        throw new ImageFailed('unsupported', 'A copy of a disk is not made here.')
    }
  }

  async #fromNothing({ signal }: Making, hold: Hold): Promise<Made> {
    const { trees } = this.#parts
    const name = trees.nameOf([])
    hold.tree(name)
    const make = () =>
      trees.making(undefined, async (unfinished) => {
        await makeRoot(unfinished)
        return trees.finish(unfinished, name, treeOfNothing)
      })
    const { sizeBytes } = trees.find(name) ?? (await this.#unpacking.run(make, { signal }))
    const origin = originOfNothing
    return { tree: name, origin, sizeBytes, layers: [], architecture: ownArchitecture, config: emptyConfig() }
  }

  #fromOther(image: string, hold: Hold): Made {
    const record = this.#parts.records.read(image)
    if (record === undefined) throw new ImageFailed('not-found', 'The image that the definition builds on is gone.')
    const { tree, sizeBytes, layers, origin = '', digest, largeIds = [] } = record
    hold.tree(tree)
    const own = { ...nothingOf(origin), tree, sizeBytes, layers, largeIds }
    return digest === undefined ? own : { ...own, digest }
  }

  #fromTree(tree: string, hold: Hold): Made {
    hold.tree(tree)
    const found = this.#parts.trees.find(tree)
    if (found === undefined && builtInBelow(tree) === undefined)
      throw new ImageFailed('not-found', 'The base image was removed meanwhile. Try again.')
    return { ...nothingOf(originOfBases), tree, sizeBytes: found?.sizeBytes ?? 0 }
  }

  /** Fetches the files of a base image that another host has stored in the object store. */
  async #fromStore(content: BaseContent, { maxBytes, signal, say }: Making, hold: Hold): Promise<Made> {
    const { trees, limits, travel } = this.#parts
    if (travel === undefined) throw new ImageFailed('unsupported', 'This host has no archive store.')
    const tree = treeOfContent(content)
    hold.tree(tree)
    const make = () =>
      trees.making(undefined, async (unfinished) => {
        const { directory, rootfs } = unfinished
        signal.throwIfAborted()
        await checkRoom(directory, limits)
        const onProgress = ({ bytes, of }: { bytes: number; of: number }) =>
          say({ progress: { step: 'bringing its base image', percent: Math.min(99, Math.floor((bytes / of) * 100)) } })
        await travel.bring({ content, rootfs, mostBytes: maxBytes, signal, onProgress })
        await writeContent({ directory, tree }, content)
        return trees.finish(unfinished, tree, { sizeBytes: await bytesBelow(rootfs) })
      })
    const { sizeBytes } = trees.find(tree) ?? (await this.#unpacking.run(make, { signal }))
    return { ...nothingOf(originOfBases), tree, sizeBytes }
  }

  async #fromRegistry(text: string, making: Making, scratch: string, hold: Hold): Promise<Made> {
    const { say } = making
    const reference = parseReference(text)
    checkMayAsk(reference, this.#parts.registries)
    say({ progress: { step: 'asking the registry', percent: 0 } })
    const login = loginFor(reference, making)
    const origin = originOf(reference, login && making.accounts?.organizationId)
    const resolved = await this.resolve(reference, making, scratch)
    const { digest, described, manifest } = resolved
    say({ line: `${formatReference(reference)} is ${digest}` })
    const fetch = async () => {
      const blobs = this.#parts.blobs.of(origin, hold.layer)
      const download = { origin, layers: manifest.layers.map((layer) => layer.digest) }
      return this.#parts.interrupted.saving(scratch, download, blobs, async () => {
        const missing = await blobs.missing(manifest.layers)
        const bytes = missing.reduce((sum, { size }) => sum + size, 0)
        const here = manifest.layers.length - missing.length
        const rest = here === 0 ? '' : `; ${here} more are already on this host`
        say({ line: `downloading ${missing.length} layers, ${asSize(bytes)}${rest}` })
        const lineAt = createDownloadLines({ layers: missing.length, bytes })
        const onBytes = (came: number, complete: number) => {
          const percent = Math.min(70, Math.floor((came / Math.max(bytes, 1)) * 70))
          say({ progress: { step: 'downloading', percent } })
          const line = lineAt(came, complete)
          if (line !== undefined) say({ line })
        }
        return fetchFromRegistry(this.#skopeo, blobs, resolved, { ...this.#fetching(scratch, making), login, onBytes })
      })
    }
    const layers = manifest.layers.map((layer) => layer.digest)
    return { digest, ...(await this.#unpacked({ origin, described, layers, fetch }, making, scratch, hold)) }
  }

  /**
   * Resolves an image's name to a digest. Asks the registry's mirrors first. Asks the registry itself only if all mirrors fail or
   * lack the image. Mirrors are not used if the organization has credentials for the registry.
   */
  async resolve(reference: Reference, making: Making, scratch: string): Promise<Resolved> {
    const fetching = this.#fetching(scratch, making)
    const { registries, log } = this.#parts
    const login = loginFor(reference, making)
    if (login !== undefined) return resolveReference(this.#skopeo, reference, { ...fetching, login })
    for (const mirror of mirrored(reference, registries.mirrors ?? [])) {
      try {
        checkIsPublic(mirror, registries)
        making.say({ line: `asking the mirror ${mirror.registry}` })
        return await resolveReference(this.#skopeo, mirror, fetching)
      } catch (error) {
        if (fetching.signal.aborted) throw error
        const isMissing = error instanceof ImageFailed && error.failure === 'not-found'
        if (!isMissing) log.warn({ err: error, mirror: mirror.registry }, 'a mirror of a registry cannot be used')
        const why = isMissing ? 'does not have the image' : 'cannot be used'
        making.say({ line: `the mirror ${why}; asking ${reference.registry}` })
      }
    }
    return resolveReference(this.#skopeo, reference, fetching)
  }

  async #fromFile(path: string, making: Making, scratch: string, hold: Hold): Promise<Made> {
    const file = await fileWithin(this.#parts.filesDir, path)
    making.say({ progress: { step: 'reading the file', percent: 0 } })
    const fetching = this.#fetching(scratch, making)
    const origin = originOfFiles
    const fetched = await fetchFromFile(this.#skopeo, this.#parts.blobs.of(origin, hold.layer), file, fetching)
    const layers = fetched.layers.map(({ digest }) => digest)
    const { described } = fetched
    return this.#unpacked({ origin, described, layers, fetch: async () => fetched }, making, scratch, hold)
  }

  /**
   * Returns the directory of files (`tree`) that these layers make. If this host does not have the tree yet, fetches and unpacks
   * the layers.
   */
  async #unpacked(
    { origin, described: { diffIds, config }, layers, fetch }: Layers,
    making: Making,
    scratch: string,
    hold: Hold,
  ): Promise<Made> {
    const { say, signal, maxBytes } = making
    let found = this.#treeMaker.find(origin, diffIds, hold.tree)
    if (found === undefined) {
      const fetched = await fetch()
      // From here on, `layers` are the digests as stored on this host. The download may have recompressed a layer, which changes
      // its digest.
      layers = fetched.layers.map(({ digest }) => digest)
      const of = { origin, layers: fetched.layers.map((layer, at) => ({ ...layer, diffId: diffIds[at] as string })) }
      const onShare = (share: number) =>
        say({ progress: { step: 'unpacking', percent: 70 + Math.min(29, Math.floor(share * 10)) } })
      found = await this.#unpacking.run(
        () => this.#treeMaker.make(of, { scratch, mostBytes: maxBytes, signal, onShare }),
        { signal },
      )
      say({ line: `unpacked, ${asSize(found.tree.sizeBytes)}` })
    } else say({ line: `the files of the image are already on this host, ${asSize(found.tree.sizeBytes)}` })
    const { sizeBytes, largeIds = [] } = found.tree
    if (sizeBytes > maxBytes) throw tooLarge(maxBytes)
    return { tree: found.name, origin, sizeBytes, layers, largeIds, architecture: ownArchitecture, config }
  }

  #fetching(scratch: string, { maxBytes, signal, say }: Making): Fetching {
    const onBytes = (bytes: number) =>
      say({ progress: { step: 'downloading', percent: Math.min(70, Math.floor((bytes / maxBytes) * 70)) } })
    return { scratch, mostBytes: maxBytes, limits: this.#parts.limits, signal, onBytes }
  }
}
