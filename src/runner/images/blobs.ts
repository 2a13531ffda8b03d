// Layers as they were downloaded, by their origin and digest, shared by all images of that origin. Only ever a saving: an image
// that is there needs none of them, so any of them may go at any time. What has its name here was checked and belongs to root.
import { createHash, randomUUID } from 'node:crypto'
import { chmod, chown, link, lstat, mkdir, realpath, rename, rm, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { namesBelow, sha256Of } from './files.ts'
import { ImageFailed } from './image-failed.ts'

/** A digest is no secret. So a layer is for those alone who may read what lies where it came from. */
type Blob = { origin: string; digest: string }

const nameOf = (digest: string) => digest.slice('sha256:'.length)

const keptNameOf = ({ origin, digest }: Blob) =>
  `${createHash('sha256').update(origin).digest('hex')}-${nameOf(digest)}`

export class Blobs {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  open(): Promise<unknown> {
    return mkdir(this.#directory, { recursive: true, mode: 0o700 })
  }

  of(origin: string): BlobsOfOrigin {
    return new BlobsOfOrigin(this.#directory, origin)
  }

  /** Forgets what no image is made of, then what was not used for longest, until the rest fits. */
  async sweep(used: readonly Blob[], mostBytes: number): Promise<void> {
    const usedNames = new Set(used.map(keptNameOf))
    const kept: { path: string; size: number; usedAt: number }[] = []
    for (const name of await namesBelow(this.#directory)) {
      const path = join(this.#directory, name)
      const stats = await lstat(path).catch(() => undefined)
      if (stats === undefined) continue
      if (usedNames.has(name)) kept.push({ path, size: stats.size, usedAt: stats.mtimeMs })
      else await rm(path, { recursive: true, force: true })
    }
    let bytes = kept.reduce((sum, { size }) => sum + size, 0)
    for (const { path, size } of kept.sort((a, b) => a.usedAt - b.usedAt)) {
      if (bytes <= mostBytes) return
      await rm(path, { force: true })
      bytes -= size
    }
  }
}

export class BlobsOfOrigin {
  readonly #directory: string
  readonly #origin: string

  constructor(directory: string, origin: string) {
    this.#directory = directory
    this.#origin = origin
  }

  #path(digest: string) {
    return join(this.#directory, keptNameOf({ origin: this.#origin, digest }))
  }

  /** Puts it at `<to>/<name>` where it is known. The link belongs to root and cannot be written through. */
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

  /** Takes a file that a program which has ended left in `from`, if it is what its digest says. */
  async take(digest: string, from: string): Promise<void> {
    const kept = this.#path(digest)
    if ((await lstat(kept).catch(() => undefined)) !== undefined) return
    const path = join(from, nameOf(digest))
    const found = (await realpath(path).catch(() => undefined)) === path ? await lstat(path) : undefined
    if (!found?.isFile() || found.nlink !== 1)
      throw new ImageFailed('corrupted', `The image is damaged: a part of it is missing (${digest}).`)
    // The name belongs to this call alone: another image may bring the same part at this moment.
    const unchecked = `${kept}.${randomUUID()}.new`
    await rename(path, unchecked)
    try {
      await chown(unchecked, 0, 0)
      await chmod(unchecked, 0o444)
      if ((await sha256Of(unchecked)) !== digest)
        throw new ImageFailed(
          'corrupted',
          `The image is damaged: a part of it is not what its digest says (${digest}).`,
        )
      await rename(unchecked, kept)
    } finally {
      await rm(unchecked, { force: true })
    }
  }
}
