// Removes unpacked files that no image uses. When the host needs space, removes kept layers too.
import { freeBytes } from '#src/kit/file-system.ts'
import type { Logger } from '#src/kit/log.ts'
import { type Blobs, keptNameOf } from './blobs.ts'
import { GivenBack } from './given-back.ts'
import type { ImageRecords, StoredImage } from './image-records.ts'
import type { Interrupted } from './interrupted.ts'
import type { ImageLimits } from './limits.ts'
import type { Trees } from './trees.ts'

/** Downloaded layers are removed if the host has less free space than `keepFreeBytes` times this factor. */
const spareForLayers = 4
/**
 * Interval of regular sweeps. Layers of interrupted downloads are kept for a day, so sweeps are needed even if no image changes.
 */
const sweepEveryMs = 3600_000

/** Names of the stored layers of an image. */
export const keptNamesOf = ({ origin, layers }: Pick<StoredImage, 'origin' | 'layers'>): string[] =>
  origin === undefined ? [] : layers.map((digest) => keptNameOf({ origin, digest }))

type SweeperParts = {
  poolDir: string
  limits: ImageLimits
  log: Logger
  records: ImageRecords
  trees: Trees
  blobs: Blobs
  interrupted: Interrupted
  givenBack?: GivenBack | undefined
}

export class Sweeper {
  readonly #parts: SweeperParts
  readonly #givenBack: GivenBack
  #running: Promise<void> | undefined
  #mustSweep = false
  #stored = { images: 0, layers: 0 }
  #sweptAt = 0

  constructor(parts: SweeperParts) {
    this.#parts = parts
    this.#givenBack = parts.givenBack ?? new GivenBack()
  }

  /**
   * Bytes of unpacked images, and of downloaded layers that are kept for later downloads, as the last sweep has measured them.
   */
  get stored(): Readonly<{ images: number; layers: number }> {
    return this.#stored
  }

  /** The sweep that is running now. New images are made only when it has ended. */
  get running(): Promise<void> | undefined {
    return this.#running
  }

  /** If layers are kept, starts a sweep when the disk is filling or the last sweep is older than `sweepEveryMs`. */
  async relieve(): Promise<void> {
    if (this.#stored.layers === 0) return
    const isDue = performance.now() - this.#sweptAt > sweepEveryMs
    if (isDue || (await this.#spareBytes()) < 0) await this.sweep()
  }

  /**
   * Removes layers and trees that no image uses. If a sweep is running, a second sweep follows, because the running sweep may have
   * missed newly unused files.
   */
  sweep(): Promise<void> {
    this.#mustSweep = true
    this.#running ??= this.#sweepWhileAsked()
    return this.#running
  }

  async #sweepWhileAsked() {
    while (this.#mustSweep) {
      this.#mustSweep = false
      await this.#sweepNow().catch((err: unknown) =>
        this.#parts.log.error({ err }, 'unused images could not be removed'),
      )
    }
    // There is no `await` between the last check of `#mustSweep` and this line. Therefore no call of `sweep` can come in between
    // and be missed.
    this.#running = undefined
  }

  /** Does one sweep. Files of an image that is being fetched stay, because `hold` protects them until the image has a record. */
  async #sweepNow() {
    const { records, trees, blobs, interrupted, limits } = this.#parts
    const unusedBytes = await trees.sweep(() => new Set(records.all().map(({ tree }) => tree)))
    this.#givenBack.add('images', 'unused', unusedBytes)
    this.#stored = { ...this.#stored, images: trees.bytesOf(records.all().map(({ tree }) => tree)) }
    const spareBytes = await this.#spareBytes()
    const stored = await blobs.bytes()
    const most = Math.max(0, Math.min(limits.keptLayersBytes, stored + spareBytes))
    let used: ReadonlySet<string> | undefined
    const kept = await blobs.sweep(
      ({ name }) => {
        used ??= new Set(records.all().flatMap(keptNamesOf))
        return used.has(name)
      },
      most,
      (bytes, why) => this.#givenBack.add('layers', why === 'unwanted' ? 'unused' : 'pressure', bytes),
    )
    const layers = kept + (await interrupted.sweep(most - kept, this.#givenBack))
    this.#stored = { ...this.#stored, layers }
    this.#sweptAt = performance.now()
  }

  /** Returns by how many bytes the kept layers may grow. If the result is negative, they must shrink by that amount. */
  async #spareBytes(): Promise<number> {
    const { keepFreeBytes } = this.#parts.limits
    return (await freeBytes(this.#parts.poolDir)) - keepFreeBytes * spareForLayers
  }
}
