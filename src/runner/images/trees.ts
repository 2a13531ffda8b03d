// Stores the files of images: images with the same layers share one directory, a tree. A tree is complete or absent, and never
// changes. Where blocks are shared (`tree-place.ts`), a tree begins as a copy of its lower layers' tree.
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { namesBelow } from './files.ts'
import type { TreePlace } from './tree-place.ts'

const nameShape = /^[0-9a-f]{64}$/

/**
 * Part of the name of every tree. Increase this number if new images must not use older trees. Existing images keep their trees,
 * because sandboxes use these trees.
 */
const generation = 3

export type Tree = {
  sizeBytes: number
  /**
   * User ids that own files of the tree and are too large for the usual user id map of a sandbox (oci/ids.ts). Absent in trees of
   * older versions of the runner.
   */
  largeIds?: number[]
  /** Digests of the unpacked layers, the lowest layer first. Absent in trees that an older version of the runner has made. */
  diffIds?: readonly string[]
  /** Digests of the packed layers, in the order of `diffIds`. The runner has verified each digest while unpacking. */
  layers?: readonly string[]
  /** Name of the tree from which this tree was copied, before its own layers were unpacked. */
  below?: string
}

/** A tree that is being made and does not have its final name yet. */
export type Unfinished = { directory: string; rootfs: string }

const descriptionOf = (directory: string) => join(directory, 'tree.json')

export class Trees {
  readonly #plain: TreePlace
  /** Where new trees are made, if this host has a file system that shares blocks. */
  #sharing: TreePlace | undefined
  /** Names of trees that must not be removed now, each with the number of callers that protect it. */
  readonly #held = new Map<string, number>()
  /** Cache of the trees' descriptions, which never change. */
  readonly #known = new Map<string, Tree>()

  constructor(plain: TreePlace) {
    this.#plain = plain
  }

  /** From now on, makes new trees at `place`, where trees share blocks. Existing trees stay where they are. */
  shareAt(place: TreePlace): void {
    this.#sharing = place
  }

  get isSharing(): boolean {
    return this.#sharing !== undefined
  }

  /** Returns the name of the tree of these layers. `tree-maker.ts` decides which origins may use the tree. */
  nameOf(diffIds: readonly string[]): string {
    return createHash('sha256')
      .update(JSON.stringify([generation, diffIds]))
      .digest('hex')
  }

  /**
   * Returns the name that older versions of the runner gave to the tree of these layers. Those versions made a separate tree for
   * each origin.
   */
  earlierNameOf(origin: string, diffIds: readonly string[]): string {
    return createHash('sha256')
      .update(JSON.stringify([2, origin, diffIds]))
      .digest('hex')
  }

  rootfsOf(name: string): string {
    return join(this.#directoryOf(name), 'rootfs')
  }

  find(name: string): Tree | undefined {
    const known = this.#known.get(name)
    if (known !== undefined) return known
    try {
      const tree = JSON.parse(readFileSync(descriptionOf(this.#directoryOf(name)), 'utf8')) as Tree
      this.#known.set(name, tree)
      return tree
    } catch {
      return undefined
    }
  }

  /** Whether a new tree can begin as a copy of the tree `name`: only if that tree is on a file system where copies share blocks. */
  canBeCopied(name: string): boolean {
    return this.#sharing !== undefined && existsSync(join(this.#sharing.directory, name))
  }

  /** Protects the tree `name` from removal, even before the tree exists. Each call of `hold` needs one call of `release`. */
  hold(name: string): void {
    this.#held.set(name, (this.#held.get(name) ?? 0) + 1)
  }

  release(name: string): void {
    const rest = (this.#held.get(name) ?? 1) - 1
    if (rest === 0) this.#held.delete(name)
    else this.#held.set(name, rest)
  }

  /**
   * Makes a directory and lets `make` fill it. The directory begins empty, or as a copy of the tree `below`. If `make` fails, the
   * directory is removed.
   */
  async making<T>(below: string | undefined, make: (unfinished: Unfinished) => Promise<T>): Promise<T> {
    const place = this.#sharing ?? this.#plain
    const directory = join(place.directory, `.new-${randomBytes(4).toString('hex')}`)
    try {
      await (below === undefined ? place.make(directory) : place.copy(this.#directoryOf(below), directory))
      return await make({ directory, rootfs: join(directory, 'rootfs') })
    } catch (error) {
      await place.removeAtOnce(directory)
      throw error
    }
  }

  /** Number of files that were made in an unfinished tree so far, including files that were removed again. */
  filesMade(tree: Unfinished): Promise<number> {
    return (this.#sharing ?? this.#plain).filesMade(tree.directory)
  }

  /**
   * Copies an unfinished tree, with the layers so far, and keeps the copy as the complete tree `name`. Must be called only if trees
   * share blocks.
   */
  async keepCopy({ directory }: Unfinished, name: string, tree: Tree): Promise<void> {
    const place = this.#sharing ?? this.#plain
    await writeFile(descriptionOf(directory), JSON.stringify(tree))
    const copy = join(place.directory, `.new-${randomBytes(4).toString('hex')}`)
    await place.copy(directory, copy)
    await this.#name(copy, name)
  }

  /** Syncs the files of a complete tree to the disk, and then gives the tree its name. */
  async finish({ directory }: Unfinished, name: string, tree: Tree): Promise<Tree> {
    const place = this.#sharing ?? this.#plain
    await writeFile(descriptionOf(directory), JSON.stringify(tree))
    await place.sync(directory)
    await this.#name(directory, name)
    // Without this sync, a power cut could leave an image's record without its tree, because records are on a different file
    // system.
    await place.syncNames()
    return tree
  }

  async #name(directory: string, name: string): Promise<void> {
    const place = this.#sharing ?? this.#plain
    await rename(directory, join(place.directory, name)).catch(async (error: unknown) => {
      // If a concurrent call has made a tree of this name, that tree is used, and the tree that this call has made is removed.
      if (this.find(name) === undefined) throw error
      await place.remove(directory)
    })
  }

  /** Removes unused trees and returns how many bytes they had. */
  async sweep(used: () => ReadonlySet<string>): Promise<number> {
    const inUse = this.#withThoseBelow([...used(), ...this.#held.keys()])
    const unused = this.#places().flatMap(({ directory }) =>
      namesIn(directory)
        .filter((name) => nameShape.test(name) && !inUse.has(name))
        .map((name) => ({ directory, name, bytes: this.#ownBytesOf(name) })),
    )
    // No `await` stands between the check above and this renaming, so no caller can begin to use an unused tree in between.
    for (const { directory, name } of unused) {
      this.#known.delete(name)
      renameSync(join(directory, name), join(directory, `.old-${name}-${randomBytes(4).toString('hex')}`))
    }
    await this.#removeNamed('.old-')
    return unused.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Returns the bytes of these trees on the disk. Blocks that several of the trees share are counted once. */
  bytesOf(names: readonly string[]): number {
    return [...this.#withThoseBelow(names)].reduce((sum, name) => sum + this.#ownBytesOf(name), 0)
  }

  /** Returns the bytes that a tree takes in addition to the tree from which it was copied. */
  #ownBytesOf(name: string): number {
    const tree = this.find(name)
    if (tree === undefined) return 0
    const below = tree.below === undefined ? 0 : (this.find(tree.below)?.sizeBytes ?? 0)
    return Math.max(0, tree.sizeBytes - below)
  }

  /** Removes trees that are incomplete because a process was killed while it wrote or removed them. */
  removeTorn(): Promise<void> {
    return this.#removeNamed('.')
  }

  #withThoseBelow(names: readonly string[]): ReadonlySet<string> {
    const all = new Set<string>()
    for (const name of names)
      for (let at: string | undefined = name; at !== undefined && !all.has(at); at = this.find(at)?.below) all.add(at)
    return all
  }

  #directoryOf(name: string): string {
    const { directory } = this.#sharing !== undefined && this.canBeCopied(name) ? this.#sharing : this.#plain
    return join(directory, name)
  }

  #places(): TreePlace[] {
    return [this.#plain, ...(this.#sharing === undefined ? [] : [this.#sharing])]
  }

  async #removeNamed(start: string): Promise<void> {
    for (const place of this.#places())
      for (const name of await namesBelow(place.directory))
        if (name.startsWith(start)) await place.remove(join(place.directory, name))
  }
}

const namesIn = (directory: string) => (existsSync(directory) ? readdirSync(directory) : [])
