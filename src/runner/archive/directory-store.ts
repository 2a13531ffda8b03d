// Stores objects as files in a directory. A file gets its final name when it is complete and synced to the disk.
import { randomUUID } from 'node:crypto'
import { mkdir, open, opendir, readdir, rename, rmdir, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { freeBytes } from '#src/kit/file-system.ts'
import { syncPath } from '#src/kit/sync-path.ts'
import { hasCode } from '../cgroup/files.ts'
import { ArchiveFailed } from './failed.ts'
import type { ObjectStore, StoredObject } from './store.ts'

/** Directory for files that are being written. No object's key begins with this name. */
const incoming = '.incoming'
const leftOverMs = 24 * 3600 * 1000

const isHash = (name: string) => /^[0-9a-f]{64}$/.test(name)

const fileOf = (key: string) => {
  const name = basename(key)
  return isHash(name) ? join(dirname(key), name.slice(0, 2), name) : key
}

const keyOf = (file: string) => (isHash(basename(file)) ? join(dirname(dirname(file)), basename(file)) : file)

const full = ['ENOSPC', 'EDQUOT', 'EFBIG']
const refused = ['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'ELOOP', 'EISDIR']

export class DirectoryStore implements ObjectStore {
  readonly #root: string
  readonly #keepFreeBytes: number
  #isSwept = false

  /**
   * `keepFreeBytes`: a write is refused if fewer bytes would stay free on the file system, because other programs use the file
   * system too.
   */
  constructor(root: string, keepFreeBytes = 0) {
    this.#root = root
    this.#keepFreeBytes = keepFreeBytes
  }

  #path(key: string) {
    return join(this.#root, fileOf(key))
  }

  /** Runs `work`. Turns errors of the file system into `ArchiveFailed` with a sentence for users. */
  async #tried<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof ArchiveFailed || !(error instanceof Error) || !('code' in error)) throw error
      const code = String(error.code)
      const where = `The archive store ${this.#root}`
      if (full.includes(code)) throw new ArchiveFailed('store full', `${where} is full.`, { cause: error })
      if (refused.includes(code)) {
        throw new ArchiveFailed('store refused', `${where} cannot be used: ${code}.`, { cause: error })
      }
      throw new ArchiveFailed('store down', `${where} does not work: ${code}.`, { cause: error })
    }
  }

  put(key: string, content: Uint8Array, signal?: AbortSignal) {
    return this.#tried(async () => {
      signal?.throwIfAborted()
      const unfinished = join(this.#root, incoming, randomUUID())
      await mkdir(dirname(unfinished), { recursive: true, mode: 0o700 })
      await this.#sweep()
      await this.#checkRoom(content.byteLength)
      try {
        const file = await open(unfinished, 'wx', 0o600)
        try {
          await file.writeFile(content)
          await file.sync()
        } finally {
          await file.close()
        }
        await this.#name(unfinished, this.#path(key))
      } catch (error) {
        await unlink(unfinished).catch(() => undefined)
        throw error
      }
    })
  }

  async #checkRoom(bytes: number) {
    if (this.#keepFreeBytes > 0 && (await freeBytes(this.#root)) < this.#keepFreeBytes + bytes)
      throw new ArchiveFailed('store full', `The archive store ${this.#root} is full.`)
  }

  async #name(unfinished: string, path: string) {
    // `mkdir` and `rename` are retried: between them, another process may remove the directory together with the last object in
    // it.
    for (let triesLeft = 3; ; triesLeft -= 1) {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      try {
        await rename(unfinished, path)
        break
      } catch (error) {
        if (!hasCode(error, 'ENOENT') || triesLeft === 0) throw error
      }
    }
    for (let above = dirname(path); above.startsWith(this.#root); above = dirname(above)) await syncPath(above)
  }

  /** Removes unfinished files that are older than a day: killed writers left them, because a write takes only seconds. */
  async #sweep() {
    if (this.#isSwept) return
    this.#isSwept = true
    for (const name of await readdir(join(this.#root, incoming))) {
      const path = join(this.#root, incoming, name)
      const found = await stat(path).catch(() => undefined)
      if (found && Date.now() - found.mtimeMs > leftOverMs) await unlink(path).catch(() => undefined)
    }
  }

  get(key: string, limit: number, signal?: AbortSignal) {
    return this.#tried(async () => {
      signal?.throwIfAborted()
      const file = await open(this.#path(key), 'r').catch(absent)
      if (file === undefined) return undefined
      try {
        const { size } = await file.stat()
        if (size > limit)
          throw new ArchiveFailed('damaged', 'The archive is damaged: one of its objects is larger than Alcove writes.')
        const content = Buffer.alloc(size)
        const { bytesRead } = await file.read(content, 0, size, 0)
        return content.subarray(0, bytesRead)
      } finally {
        await file.close()
      }
    })
  }

  async *list(prefix: string, signal?: AbortSignal): AsyncIterable<StoredObject> {
    yield* this.#below(join(this.#root, prefix), signal)
  }

  async *#below(directory: string, signal?: AbortSignal): AsyncIterable<StoredObject> {
    const entries = await this.#tried(() => opendir(directory).catch(absent))
    if (entries === undefined) return
    const next = () => this.#tried(() => entries.read())
    try {
      for (let entry = await next(); entry !== null; entry = await next()) {
        signal?.throwIfAborted()
        const path = join(directory, entry.name)
        if (entry.isDirectory()) yield* this.#below(path, signal)
        const found = entry.isFile() ? await this.#tried(() => stat(path).catch(absent)) : undefined
        if (found) yield { key: keyOf(relative(this.#root, path)), bytes: found.size }
      }
    } finally {
      await entries.close()
    }
  }

  remove(key: string, signal?: AbortSignal) {
    return this.#tried(async () => {
      signal?.throwIfAborted()
      const path = this.#path(key)
      await unlink(path).catch(absent)
      for (let above = dirname(path); above.startsWith(`${this.#root}/`); above = dirname(above)) {
        const isGone = await rmdir(above).then(
          () => true,
          () => false,
        )
        if (!isGone) break
      }
    })
  }

  async close() {}
}

const absent = (error: unknown): undefined => {
  if (!hasCode(error, 'ENOENT')) throw error
}
