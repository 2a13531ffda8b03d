// Identifies the base images on this host. Finds or fetches the base images that disks from other hosts need (docs/adr/0046).
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { FairQueue } from '#src/kit/queue.ts'
import type { ImageConfig, Progress } from '#src/wire/runner-link.ts'
import { type BasePlace, type BaseTravel, readContentIn, writeContent } from './base-content.ts'
import { type BaseContent, type BaseIdentity, imageOfBase, nameOfContent, treeOfContent } from './base-identity.ts'
import type { Generations } from './generations.ts'
import { ImageFailed } from './image-failed.ts'
import { builtInTree } from './image-maker.ts'
import type { Library } from './library.ts'

type Parts = {
  generations: Generations
  library: Library
  /** Functions of the object store that base images need. Absent: there is no object store, so `identityOf` returns undefined. */
  travel: BaseTravel | undefined
  configOf: (image: string) => ImageConfig | undefined
  /** Called when the files of an image were hashed or fetched. `Bases.names` then returns one more name. */
  onChange: () => void
  now: () => number
}

type Transfer = { signal: AbortSignal; onProgress: (progress: Progress) => void }

/** Milliseconds for which an unused base image stays: a restore needs its base image before any disk refers to the image. */
const unusedForMs = 3_600_000

const isLayered = (tree: string) => /^[0-9a-f]{64}$/.test(tree)

export class Bases {
  readonly #parts: Parts
  /** Hash and random salt of each tree's files. Key: name of the tree. Undefined: the files are not hashed yet. */
  readonly #contents = new Map<string, BaseContent | undefined>()
  readonly #hashing = new Map<string, Promise<BaseContent>>()
  /** Hashing reads all files of an image, so only one image is hashed at a time. */
  readonly #hashes = new FairQueue({ atOnce: 1 })
  readonly #keeping = new Map<string, Promise<void>>()
  /** Images that must not be removed now, with the number of callers that hold each. */
  readonly #held = new Map<string, number>()
  /** The last removal of an unused image (`removeUnused`). A restore of a disk waits until this removal has ended. */
  #removing: Promise<void> = Promise.resolve()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Lists the names of all bases on this host whose files have been hashed. */
  names(): string[] {
    return this.#places().flatMap((place) => {
      const content = this.#knownContentOf(place)
      return content === undefined ? [] : [nameOfContent(content)]
    })
  }

  /**
   * Returns the identity of an image's files. Stores the files first if other hosts may need them. Undefined if the image is not
   * here.
   */
  async identityOf(image: string): Promise<BaseIdentity | undefined> {
    const { library, generations, travel } = this.#parts
    if (travel === undefined) return undefined
    const generation = generations.find(image)
    const record = generation === undefined ? library.recordOf(image) : undefined
    const tree = generation === undefined ? record?.tree : builtInTree(generation)
    const config = this.#parts.configOf(image)
    if (tree === undefined || config === undefined) return undefined
    const said = { config, largeIds: library.largeIdsOf(image) }
    // All hosts of the region pull an image by the same digest, so the digest identifies the image. A built image has only the
    // digest of the image in its FROM line, and its own files may differ on another host.
    if (record?.digest !== undefined && !record.isBuilt) return { digest: record.digest, ...said }
    const place = { tree, directory: library.directoryOf(tree) }
    const content = await this.#contentOf(travel, place)
    if (travel.keep !== undefined) await this.#keep(travel.keep, content, place)
    const isOfLayers = isLayered(tree) && tree !== treeOfContent(content)
    return { ...(isOfLayers ? { tree } : {}), content, ...said }
  }

  /**
   * Calls `use` with the name of an image on this host that has the files of the base image. First makes this image if it is
   * missing, and fetches its files if this host lacks them. Throws `ImageFailed` if that fails.
   */
  async with<T>(identity: BaseIdentity, transfer: Transfer, use: (image: string) => Promise<T>): Promise<T> {
    const { library, onChange } = this.#parts
    const image = imageOfBase(identity)
    this.#held.set(image, (this.#held.get(image) ?? 0) + 1)
    try {
      await this.#removing.catch(() => {})
      if (library.recordOf(image) === undefined) {
        const tree = this.#treeOf(identity)
        if (tree === undefined && identity.content === undefined)
          throw new ImageFailed('not-found', 'This host has another version of its base image.')
        await library.bringBelow(identity, tree, transfer)
        if (tree === undefined) onChange()
      }
      await library.markUsed(image)
      return await use(image)
    } finally {
      // A restore may take longer than `unusedForMs`. The image therefore stays for `unusedForMs` after the restore has ended.
      if (library.recordOf(image) !== undefined) await library.markUsed(image).catch(() => {})
      const others = (this.#held.get(image) ?? 1) - 1
      if (others === 0) this.#held.delete(image)
      else this.#held.set(image, others)
    }
  }

  /**
   * Removes images for restored disks an hour after their last restore, if no disk uses them (`inUse`). Returns the removed images'
   * names.
   */
  async removeUnused(inUse: ReadonlySet<string>): Promise<string[]> {
    const { library, now } = this.#parts
    const removed: string[] = []
    for (const { image, usedAt } of await library.listBelowDisks()) {
      if (inUse.has(image) || this.#held.has(image) || now() - usedAt < unusedForMs) continue
      this.#removing = library.remove(image)
      await this.#removing
      removed.push(image)
    }
    return removed
  }

  /** Returns the name of the tree on this host that has the files of a base image. */
  #treeOf({ digest, tree, content }: BaseIdentity): string | undefined {
    if (digest !== undefined) return this.#parts.library.treeOfDigest(digest)
    if (tree !== undefined && this.#parts.library.hasTree(tree)) return tree
    if (content === undefined) return undefined
    const name = nameOfContent(content)
    return this.#places().find((place) => {
      const known = this.#knownContentOf(place)
      return known !== undefined && nameOfContent(known) === name
    })?.tree
  }

  #places(): BasePlace[] {
    const { library, generations } = this.#parts
    const trees = new Set([...generations.list().map(builtInTree), ...library.treesUsed()])
    return [...trees].map((tree) => ({ tree, directory: library.directoryOf(tree) }))
  }

  #knownContentOf(place: BasePlace): BaseContent | undefined {
    const { tree } = place
    if (!this.#contents.has(tree)) this.#contents.set(tree, readContentIn(place))
    return this.#contents.get(tree)
  }

  #contentOf(travel: BaseTravel, place: BasePlace): Promise<BaseContent> {
    const known = this.#knownContentOf(place)
    if (known !== undefined) return Promise.resolve(known)
    const { tree } = place
    const hashing =
      this.#hashing.get(tree) ??
      this.#hashes.run(() => this.#hash(travel, place)).finally(() => this.#hashing.delete(tree))
    this.#hashing.set(tree, hashing)
    return hashing
  }

  #keep(keep: NonNullable<BaseTravel['keep']>, content: BaseContent, { tree, directory }: BasePlace): Promise<void> {
    const keeping =
      this.#keeping.get(tree) ?? keep(content, join(directory, 'rootfs')).finally(() => this.#keeping.delete(tree))
    this.#keeping.set(tree, keeping)
    return keeping
  }

  async #hash(travel: BaseTravel, place: BasePlace): Promise<BaseContent> {
    const sha256 = await travel.hash(join(place.directory, 'rootfs'))
    const content = { sha256, salt: randomBytes(16).toString('hex') }
    await writeContent(place, content)
    this.#contents.set(place.tree, content)
    this.#parts.onChange()
    return content
  }
}
