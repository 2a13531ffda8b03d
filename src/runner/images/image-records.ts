// Stores a small record for each image: the image's configuration and where its files are. Even a power cut leaves no incomplete
// record.
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ImageConfig } from '#src/wire/runner-link.ts'
import { namesBelow } from './files.ts'

export type Brought = {
  image: string
  /** Digest of a pulled image. The digest is recorded because the tag may later refer to another image. */
  digest?: string
  /** Size of the unpacked files. Images of one origin with the same layers share these files. */
  sizeBytes: number
  architecture: string
  config: ImageConfig
}

export type StoredImage = Brought & {
  organizationId?: string
  /** True while a build that has not ended uses the image, for FROM or for `COPY --from`. */
  isUnfinished?: true
  /** True if the image exists only because cached lines of definitions were built on it. Lists of images do not contain it. */
  isBelowLines?: true
  /**
   * True if the image exists only as the base of disks that came from other hosts (bases.ts). Lists of images do not contain it.
   */
  isBelowDisks?: true
  /** True if this host has built the image from a definition. */
  isBuilt?: true
  tree: string
  layers: string[]
  /** User ids that the image needs and that are too large for the usual user id map of a sandbox (oci/ids.ts). Absent: none. */
  largeIds?: readonly number[]
  /** Origin of the tree and the layers. Absent if an older version of the runner fetched the image; then no layers are kept. */
  origin?: string
}

export const imageNameShape = /^[a-z0-9][a-z0-9._-]{0,127}$/i
const recordName = 'image.json'

export const asBrought = ({
  organizationId: _organizationId,
  isUnfinished: _isUnfinished,
  isBelowLines: _isBelowLines,
  isBelowDisks: _isBelowDisks,
  isBuilt: _isBuilt,
  tree: _tree,
  layers: _layers,
  origin: _origin,
  largeIds: _largeIds,
  ...brought
}: StoredImage): Brought => brought

export class ImageRecords {
  /** The directory of all records. For each image, it contains a subdirectory that is named like the image. */
  readonly directory: string

  constructor(directory: string) {
    this.directory = directory
  }

  /**
   * Makes the directory for records. Removes what a killed runner left: half-written records, and base images of unfinished builds.
   */
  async open(): Promise<void> {
    await mkdir(this.directory, { recursive: true, mode: 0o711 })
    const isTorn = (name: string) => name.startsWith('.') || this.read(name)?.isUnfinished
    const torn = (await namesBelow(this.directory)).filter(isTorn)
    for (const name of torn) await rm(join(this.directory, name), { recursive: true, force: true })
  }

  read(image: string): StoredImage | undefined {
    if (!imageNameShape.test(image)) return undefined
    try {
      const record = JSON.parse(readFileSync(join(this.directory, image, recordName), 'utf8')) as Partial<StoredImage>
      return record.tree === undefined ? undefined : (record as StoredImage)
    } catch {
      return undefined
    }
  }

  all(): StoredImage[] {
    try {
      return readdirSync(this.directory)
        .sort()
        .flatMap((name) => this.read(name) ?? [])
    } catch {
      return []
    }
  }

  /**
   * Adds a complete record. If a record of this name exists already, for example because of a concurrent call, that record
   * stays.
   */
  async add(record: StoredImage): Promise<void> {
    const { image } = record
    const unfinished = join(this.directory, `.new-${randomBytes(4).toString('hex')}`)
    try {
      await mkdir(unfinished, { mode: 0o700 })
      await writeFile(join(unfinished, recordName), JSON.stringify(record, null, 2), { flush: true })
      await rename(unfinished, join(this.directory, image)).catch((error: unknown) => {
        if (this.read(image) === undefined) throw error
      })
    } finally {
      await rm(unfinished, { recursive: true, force: true })
    }
  }

  /** Replaces the existing record of this image name. */
  async replace(record: StoredImage): Promise<void> {
    const path = join(this.directory, record.image, recordName)
    await writeFile(`${path}.new`, JSON.stringify(record, null, 2), { flush: true })
    await rename(`${path}.new`, path)
  }

  /** Returns when a record was made, or last marked as used, in milliseconds since 1970. 0 if there is no such record. */
  async usedAt(image: string): Promise<number> {
    return (await stat(join(this.directory, image, recordName)).catch(() => undefined))?.mtimeMs ?? 0
  }

  async markUsed(image: string): Promise<void> {
    const now = new Date()
    await utimes(join(this.directory, image, recordName), now, now)
  }

  /** Removes a record, if there is one. */
  async remove(image: string): Promise<void> {
    const removed = join(this.directory, `.old-${randomBytes(4).toString('hex')}`)
    try {
      if (this.read(image) !== undefined) await rename(join(this.directory, image), removed)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
    await rm(removed, { recursive: true, force: true })
  }
}
