// The files of images, by what they are made of and where that came from: images of one origin with the same layers share one
// directory. Each is whole or not there at all, and never changes.
import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, renameSync } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { removeTree } from '#src/kit/remove-tree.ts'
import { bytesBelow, namesBelow, syncTree } from './files.ts'

const nameShape = /^[0-9a-f]{64}$/

/**
 * Part of every name, and another number once what was made before may not be used for new images: in those without one layers
 * of an image may be missing. An image that is recorded keeps the tree it was recorded with, as sandboxes lie over it.
 */
const generation = 2

type Tree = { sizeBytes: number }

export class Trees {
  readonly #directory: string
  /** Trees that somebody is about to use, with the number of users. */
  readonly #held = new Map<string, number>()

  constructor(directory: string) {
    this.#directory = directory
  }

  open(): Promise<unknown> {
    // Sandboxes walk through here as nobody, but have nothing to list.
    return mkdir(this.#directory, { recursive: true, mode: 0o711 })
  }

  /** Anybody may describe an image by the layers of another's: where it comes from has to have them too. */
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

  /** From now on it stays, if it is there or comes, until it is released as often. */
  hold(name: string): void {
    this.#held.set(name, (this.#held.get(name) ?? 0) + 1)
  }

  release(name: string): void {
    const rest = (this.#held.get(name) ?? 1) - 1
    if (rest === 0) this.#held.delete(name)
    else this.#held.set(name, rest)
  }

  /** Takes a directory of the same file system over. */
  async add(name: string, rootfs: string): Promise<Tree> {
    const unfinished = join(this.#directory, `.new-${randomBytes(4).toString('hex')}`)
    await mkdir(unfinished, { mode: 0o711 })
    try {
      await rename(rootfs, join(unfinished, 'rootfs'))
      const tree: Tree = { sizeBytes: await bytesBelow(join(unfinished, 'rootfs')) }
      await writeFile(join(unfinished, 'tree.json'), JSON.stringify(tree))
      await syncTree(unfinished)
      await rename(unfinished, join(this.#directory, name)).catch((error: unknown) => {
        // Somebody else has made the same meanwhile: theirs is as good.
        if (this.find(name) === undefined) throw error
      })
      return tree
    } finally {
      await removeTree(unfinished)
    }
  }

  /** Removes trees that nobody uses. The check by `used` and the loss of their names happen in one turn, so nothing comes between. */
  async sweep(used: () => ReadonlySet<string>): Promise<void> {
    const inUse = used()
    for (const name of readdirSync(this.#directory)) {
      if (!nameShape.test(name) || inUse.has(name) || this.#held.has(name)) continue
      renameSync(join(this.#directory, name), join(this.#directory, `.old-${name}-${randomBytes(4).toString('hex')}`))
    }
    await this.#removeNamed('.old-')
  }

  /** What a killed process left. */
  removeTorn(): Promise<void> {
    return this.#removeNamed('.')
  }

  async #removeNamed(start: string): Promise<void> {
    for (const name of await namesBelow(this.#directory))
      if (name.startsWith(start)) await removeTree(join(this.#directory, name))
  }
}
