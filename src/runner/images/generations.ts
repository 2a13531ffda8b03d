// Versions ("generations") of the default image: `default`, then `default.2`, `default.3`, … New sandboxes use the newest version.
// An older version stays while a disk needs that version.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ImageDescription } from './recipe.ts'

/** Name that control uses for the default image, whatever its version. The first version has this name too. */
export const builtInImage = 'default'

/** Contents of an image's file `image.json`. */
export type StoredDefault = { recipe: string; description: ImageDescription; madeAt?: string }

const shape = /^default(?:\.([1-9]\d{0,8}))?$/

const numberOf = (image: string): number | undefined => {
  const match = shape.exec(image)
  return match === null ? undefined : Number(match[1] ?? 1)
}

export const isGeneration = (image: string): boolean => numberOf(image) !== undefined

export const nextGeneration = (image: string | undefined): string =>
  image === undefined ? builtInImage : `${builtInImage}.${(numberOf(image) ?? 0) + 1}`

/**
 * Minimum time in milliseconds for which a replaced version of the default image stays. A sandbox that is being created may use
 * that version before any disk refers to the version.
 */
const replacedForMs = 3_600_000

export class Generations {
  readonly #images: string
  #current: string | undefined

  constructor(images: string) {
    this.#images = images
  }

  /**
   * Returns the contents of the file `image.json` of a version of the default image. Undefined if this version is not on this host.
   */
  read(image: string): StoredDefault | undefined {
    if (!isGeneration(image)) return undefined
    try {
      const stored = JSON.parse(readFileSync(this.#record(image), 'utf8')) as Partial<StoredDefault>
      return stored.description === undefined ? undefined : (stored as StoredDefault)
    } catch {
      return undefined
    }
  }

  /** Lists the versions of the default image on this host that were made completely, oldest first. */
  list(): string[] {
    try {
      return readdirSync(this.#images)
        .filter((name) => this.read(name) !== undefined)
        .sort((a, b) => (numberOf(a) ?? 0) - (numberOf(b) ?? 0))
    } catch {
      return []
    }
  }

  /** Returns the newest version of the default image, which new sandboxes use. Undefined if this host has no version. */
  current(): string | undefined {
    this.#current ??= this.list().at(-1)
    return this.#current
  }

  /** Must be called when a new version of the default image is complete. Otherwise `current` keeps returning the older version. */
  changed(): void {
    this.#current = undefined
  }

  /**
   * Returns `image` if this host has that version, otherwise the newest version. A disk from another runner's archive may name a
   * version that this host lacks.
   */
  resolve(image: string): string | undefined {
    return this.read(image) === undefined ? this.current() : image
  }

  /**
   * Returns undefined if `image` is not a version of the default image. Otherwise returns `image`, or the newest version if this
   * host lacks `image`.
   */
  find(image: string): string | undefined {
    return isGeneration(image) ? this.resolve(image) : undefined
  }

  madeAt(image: string): Date {
    return new Date(this.read(image)?.madeAt ?? statSync(this.#record(image)).mtimeMs)
  }

  rootfsOf(image: string): string {
    return join(this.#images, image, 'rootfs')
  }

  /**
   * Removes versions of the default image that were replaced at least an hour ago and that `inUse` does not contain. Returns the
   * removed names.
   */
  async removeUnneeded(inUse: ReadonlySet<string>, now: Date): Promise<string[]> {
    const all = this.list()
    const unneeded = all.filter((image, index) => {
      const next = all[index + 1]
      if (next === undefined || inUse.has(image)) return false
      return now.getTime() - this.madeAt(next).getTime() >= replacedForMs
    })
    for (const image of unneeded) {
      // The directory is renamed first, so that a half-removed one never looks complete. After a kill, the next start removes the
      // rest.
      const going = join(this.#images, `.old-${image}`)
      await rename(join(this.#images, image), going)
      await rm(going, { recursive: true, force: true, maxRetries: 10 })
    }
    return unneeded
  }

  #record(image: string) {
    return join(this.#images, image, 'image.json')
  }
}
