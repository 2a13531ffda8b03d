// Stores downloaded layers by origin and digest, only as a cache. A layer gets its final name after its digest was verified and
// root owns the file.
import { createHash, randomUUID } from 'node:crypto'
import { constants, existsSync, renameSync } from 'node:fs'
import { chmod, chown, copyFile, link, lstat, mkdir, realpath, rename, rm, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { namesBelow, sha256Of } from './files.ts'
import { ImageFailed } from './image-failed.ts'

/** A stored layer. Images share layers only within one origin: a digest alone proves nothing, because anyone may know it. */
type Blob = { origin: string; digest: string }

/** A layer file on this host. `usedAt`: when the layer was last used, in milliseconds since 1970. */
type Stored = { name: string; path: string; size: number; usedAt: number }

const nameOf = (digest: string) => digest.slice('sha256:'.length)

export const keptNameOf = ({ origin, digest }: Blob) =>
  `${createHash('sha256').update(origin).digest('hex')}-${nameOf(digest)}`

const keptNameLength = keptNameOf({ origin: '', digest: `sha256:${'0'.repeat(64)}` }).length

export class Blobs {
  readonly #directory: string
  /** Names of layers that must not be removed now, each with the number of callers that protect it. */
  readonly #held = new Map<string, number>()

  constructor(directory: string) {
    this.#directory = directory
  }

  open(): Promise<unknown> {
    return mkdir(this.#directory, { recursive: true, mode: 0o700 })
  }

  /** Returns the stored layers of one origin. `onUse` is called with a layer's name before each use of it. */
  of(origin: string, onUse: (name: string) => void = () => {}): BlobsOfOrigin {
    return new BlobsOfOrigin(this.#directory, origin, onUse)
  }

  /** Protects a layer from removal until each call of `hold` had its `release`. The layer need not be stored yet. */
  hold(name: string): void {
    this.#held.set(name, (this.#held.get(name) ?? 0) + 1)
  }

  release(name: string): void {
    const rest = (this.#held.get(name) ?? 1) - 1
    if (rest === 0) this.#held.delete(name)
    else this.#held.set(name, rest)
  }

  /** Whether `hold` protects this file. An unverified file has the name of its layer and a suffix, so only the beginning counts. */
  #isHeld({ name }: Stored): boolean {
    return this.#held.has(name.slice(0, keptNameLength))
  }

  /**
   * Removes unwanted layers, and then the least recently used ones until the remaining layers have at most `mostBytes`. Held layers
   * stay. Returns the total bytes that remain.
   */
  async sweep(
    isWanted: (stored: Stored) => boolean,
    mostBytes: number,
    onRemoved: (bytes: number, why: 'unwanted' | 'surplus') => void,
  ): Promise<number> {
    const all = (await this.#list()).sort((a, b) => a.usedAt - b.usedAt)
    const removed: string[] = []
    let bytes = all.reduce((sum, { size }) => sum + size, 0)
    // Nobody can call `hold` between the check `#isHeld` and the renaming. Both happen in one turn of the event loop.
    const remove = (stored: Stored, why: 'unwanted' | 'surplus') => {
      const path = join(this.#directory, `.old-${randomUUID()}`)
      renameSync(stored.path, path)
      removed.push(path)
      bytes -= stored.size
      onRemoved(stored.size, why)
    }
    const free = all.filter((stored) => existsSync(stored.path) && !this.#isHeld(stored))
    for (const stored of free) if (!isWanted(stored)) remove(stored, 'unwanted')
    for (const stored of free) if (bytes > mostBytes && existsSync(stored.path)) remove(stored, 'surplus')
    for (const path of removed) await rm(path, { recursive: true, force: true })
    return bytes
  }

  async bytes(): Promise<number> {
    return (await this.#list()).reduce((sum, { size }) => sum + size, 0)
  }

  async #list(): Promise<Stored[]> {
    const all = (await namesBelow(this.#directory)).map(async (name) => {
      const path = join(this.#directory, name)
      const stats = await lstat(path).catch(() => undefined)
      return stats === undefined ? [] : [{ name, path, size: stats.size, usedAt: stats.mtimeMs }]
    })
    return (await Promise.all(all)).flat()
  }
}

export class BlobsOfOrigin {
  readonly #directory: string
  readonly #origin: string
  readonly #onUse: (name: string) => void

  constructor(directory: string, origin: string, onUse: (name: string) => void) {
    this.#directory = directory
    this.#origin = origin
    this.#onUse = onUse
  }

  #path(digest: string) {
    const name = keptNameOf({ origin: this.#origin, digest })
    this.#onUse(name)
    return join(this.#directory, name)
  }

  /**
   * Hard-links a stored layer into the directory `to`. Only root can change the layer's file. Returns false if the layer is not
   * stored.
   */
  async offer(digest: string, to: string): Promise<boolean> {
    try {
      await link(this.#path(digest), join(to, nameOf(digest)))
      await utimes(this.#path(digest), new Date(), new Date())
      return true
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') return false
      if (code === 'EEXIST') return true
      throw error
    }
  }

  /** Returns the given layers that are not stored here. Removes a stored file with a wrong length, which a power cut may leave. */
  async missing<Layer extends { digest: string; size: number }>(layers: readonly Layer[]): Promise<Layer[]> {
    const isHere = layers.map(async ({ digest, size }) => {
      const stats = await lstat(this.#path(digest)).catch(() => undefined)
      if (stats !== undefined && stats.size !== size) await rm(this.#path(digest), { force: true })
      return stats?.size === size
    })
    const found = await Promise.all(isHere)
    return layers.filter((_, at) => !found[at])
  }

  /** Moves a layer of `other` to this origin. No error if `other` does not have the layer. */
  async moveFrom(other: BlobsOfOrigin, digest: string): Promise<void> {
    await ignoring(['ENOENT'], rename(other.#path(digest), this.#path(digest)))
  }

  /** Adds a layer of `other`, as a hard link. No error if `other` does not have the layer, or if this origin has it already. */
  async linkFrom(other: BlobsOfOrigin, digest: string): Promise<void> {
    await ignoring(['ENOENT', 'EEXIST'], link(other.#path(digest), this.#path(digest)))
  }

  /**
   * Copies the file for this digest from `from`. A program may still be writing the file. A copy with a wrong digest is removed.
   */
  async takeCopy(digest: string, from: string): Promise<void> {
    const path = join(from, nameOf(digest))
    if (!(await lstat(path).catch(() => undefined))?.isFile()) return
    const unchecked = `${this.#path(digest)}.${randomUUID()}.new`
    try {
      await copyFile(path, unchecked, constants.COPYFILE_FICLONE)
      await chmod(unchecked, 0o444)
      if ((await sha256Of(unchecked)) === digest) await rename(unchecked, this.#path(digest))
    } finally {
      await rm(unchecked, { force: true })
    }
  }

  /** Moves the file for this digest from `from`, after its writer has ended. Throws if the file does not match the digest. */
  async take(digest: string, from: string): Promise<void> {
    const kept = this.#path(digest)
    if ((await lstat(kept).catch(() => undefined)) !== undefined) return
    const path = join(from, nameOf(digest))
    const found = (await realpath(path).catch(() => undefined)) === path ? await lstat(path) : undefined
    if (!found?.isFile() || found.nlink !== 1)
      throw new ImageFailed('corrupted', `The image is damaged: a part of it is missing (${digest}).`)
    // The temporary name is random, because another image may be downloading the same layer at this moment.
    const unchecked = `${kept}.${randomUUID()}.new`
    await rename(path, unchecked)
    try {
      await chown(unchecked, 0, 0)
      await chmod(unchecked, 0o444)
      if ((await sha256Of(unchecked)) !== digest)
        throw new ImageFailed('corrupted', `The image is damaged: a part of it does not match its digest (${digest}).`)
      await rename(unchecked, kept)
    } finally {
      await rm(unchecked, { force: true })
    }
  }
}

const ignoring = (codes: readonly string[], work: Promise<unknown>) =>
  work.catch((error: NodeJS.ErrnoException) => {
    if (!codes.includes(error.code ?? '')) throw error
  })
