// A btrfs file system on which images share the disk space of common layers (docs/adr/0035). It is in a sparse file, which is made
// with the first fetched image. On a host that does not support btrfs, images share no layers, which is logged.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from '#src/kit/log.ts'
import { mountPoolImage, unmountPoolImage } from '../pool-file/pool-image.ts'
import { SpaceClaim } from '../pool-file/space-claim.ts'
import { SharingPlace } from './tree-place.ts'

type ImagePoolParts = { poolDir: string; keepFreeBytes: number; log: Logger; bytes?: number | undefined }

export class ImagePool {
  readonly #parts: ImagePoolParts
  readonly #image: string
  readonly #place: string
  #opening: Promise<SharingPlace | undefined> | undefined
  #claim: SpaceClaim | undefined

  constructor(parts: ImagePoolParts) {
    this.#parts = parts
    this.#image = join(parts.poolDir, 'image-pool.img')
    this.#place = join(parts.poolDir, 'image-pool')
  }

  /** Mounts the file system if it exists. Throws if the mount fails, because images on the file system would seem to be missing. */
  async openExisting(): Promise<SharingPlace | undefined> {
    return existsSync(this.#image) ? this.open() : undefined
  }

  /**
   * Mounts the file system, and makes it first if it is missing. Resolves with undefined if this host does not support such a file
   * system.
   */
  open(): Promise<SharingPlace | undefined> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined
      if (existsSync(this.#image)) throw error
      this.#parts.log.warn({ err: error }, 'no btrfs here: images share no layers')
      this.#opening = Promise.resolve(undefined)
      return undefined
    })
    return this.#opening
  }

  async #open(): Promise<SharingPlace> {
    const { keepFreeBytes, log, bytes } = this.#parts
    const [image, place] = [this.#image, this.#place]
    await mountPoolImage({ image, place, discard: 'sync', ...(bytes === undefined ? {} : { bytes }) })
    const trees = new SharingPlace(join(place, 'trees'))
    await trees.open()
    const consequence = 'images may find no room'
    this.#claim = new SpaceClaim({ image, place, log, keepFreeBytes, consequence })
    await this.#claim.look()
    return trees
  }

  /** Stops changing the size of the ballast. The file system stays mounted, because sandboxes use the files in it. */
  async close(): Promise<void> {
    await this.#claim?.close()
  }
}

/** For tests, before a test removes its data directory: unmounts the file system of images. No sandbox may use this file system. */
export const unmountImagePool = (poolDir: string): Promise<void> => unmountPoolImage(join(poolDir, 'image-pool'))
