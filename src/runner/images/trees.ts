// The files of images, stored by origin and layers: images of one origin with the same layers share one directory. Each is
// complete or absent, and never changes.
import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, renameSync } from 'node:fs'
import { chmod, mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { removeTree } from '#src/kit/remove-tree.ts'
import { bytesBelow, namesBelow, syncTree } from './files.ts'
import type { Unpacked } from './unpack.ts'

const nameShape = /^[0-9a-f]{64}$/

/**
 * Part of every tree's name. It is raised when earlier trees must not be used for new images: trees before 2 may lack layers. An
 * image keeps the tree it was recorded with, because sandboxes use it as their lowest layer.
 */
const generation = 2

/** `largeIds`: ids of the image's users above those that every sandbox has (oci/ids.ts). Absent in trees of older runners. */
type Tree = { sizeBytes: number; largeIds?: number[] }

export class Trees {
  readonly #directory: string
  /** Names of trees that are about to be used, with the number of users of each. */
  readonly #held = new Map<string, number>()

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Makes the directory. Owners of files may be users of this host (oci/ids.ts), so only root may pass through it. */
  async open(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    await chmod(this.#directory, 0o700)
  }

  /**
   * The name of the tree of these layers. The name includes the origin, because anybody could describe an image by the layers of
   * another image.
   */
  nameOf(origin: string, diffIds: readonly string[]): string {
    return createHash('sha256')
      .update(JSON.stringify([generation, origin, diffIds]))
      .digest('hex')
  }

  rootfsOf(name: string): string {
    return join(this.#directory, name, 'rootfs')
  }

  find(name: string): Tree | undefined {
    try {
      return JSON.parse(readFileSync(join(this.#directory, name, 'tree.json'), 'utf8')) as Tree
    } catch {
      return undefined
    }
  }

  /** Protects a tree from removal, even before it exists. Each call needs one call of `release`. */
  hold(name: string): void {
    this.#held.set(name, (this.#held.get(name) ?? 0) + 1)
  }

  release(name: string): void {
    const rest = (this.#held.get(name) ?? 1) - 1
    if (rest === 0) this.#held.delete(name)
    else this.#held.set(name, rest)
  }

  /** Makes a directory of the same file system a tree by renaming it. */
  async add(name: string, { rootfs, largeIds }: Unpacked): Promise<Tree> {
    const unfinished = join(this.#directory, `.new-${randomBytes(4).toString('hex')}`)
    await mkdir(unfinished, { mode: 0o700 })
    try {
      await rename(rootfs, join(unfinished, 'rootfs'))
      const tree: Tree = { sizeBytes: await bytesBelow(join(unfinished, 'rootfs')), largeIds }
      await writeFile(join(unfinished, 'tree.json'), JSON.stringify(tree))
      await syncTree(unfinished)
      await rename(unfinished, join(this.#directory, name)).catch((error: unknown) => {
        // Another call made the same tree meanwhile; that one is used.
        if (this.find(name) === undefined) throw error
      })
      return tree
    } finally {
      await removeTree(unfinished)
    }
  }

  /**
   * Removes unused trees, and returns their bytes. The check by `used` and the renaming happen in one turn of the event loop, so
   * nothing comes between.
   */
  async sweep(used: () => ReadonlySet<string>): Promise<number> {
    const inUse = used()
    let bytes = 0
    for (const name of readdirSync(this.#directory)) {
      if (!nameShape.test(name) || inUse.has(name) || this.#held.has(name)) continue
      bytes += this.find(name)?.sizeBytes ?? 0
      renameSync(join(this.#directory, name), join(this.#directory, `.old-${name}-${randomBytes(4).toString('hex')}`))
    }
    await this.#removeNamed('.old-')
    return bytes
  }

  /** Removes half-written and half-removed trees of a killed process. */
  removeTorn(): Promise<void> {
    return this.#removeNamed('.')
  }

  async #removeNamed(start: string): Promise<void> {
    for (const name of await namesBelow(this.#directory))
      if (name.startsWith(start)) await removeTree(join(this.#directory, name))
  }
}
