// Saves the complete layers of an interrupted download for at most a day. The next download from the same repository needs only the
// remaining layers.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Blobs, type BlobsOfOrigin } from './blobs.ts'
import { namesBelow } from './files.ts'
import type { GivenBack } from './given-back.ts'

type Download = { origin: string; layers: string[] }

const noteName = 'download.json'
const keptForMs = 24 * 3600_000

/** Directory in which skopeo puts the layers that it downloads. */
const downloadsTo = (scratch: string) => join(scratch, 'work/blobs/sha256')

export class Interrupted {
  readonly #layers: Blobs

  constructor(directory: string) {
    this.#layers = new Blobs(directory)
  }

  /** Saves the complete layers of downloads that a kill of the runner has interrupted. A damaged list of layers is ignored. */
  async open(scratches: string, blobs: Blobs): Promise<void> {
    await this.#layers.open()
    for (const name of await namesBelow(scratches)) {
      const scratch = join(scratches, name)
      try {
        const { origin, layers } = JSON.parse(await readFile(join(scratch, noteName), 'utf8')) as Download
        const saved = this.#layers.of(origin)
        for (const digest of layers) {
          // If the runner was killed while it unpacked the image, the layers are already in `blobs`, and not where skopeo downloads
          // to.
          await saved.linkFrom(blobs.of(origin), digest)
          // The layer is copied and not moved, because skopeo may still write briefly after the runner was killed.
          await saved.takeCopy(digest, downloadsTo(scratch))
        }
      } catch {}
    }
  }

  /** Runs a download with the layers that an earlier download has saved. If this download fails, saves its complete layers. */
  async saving<T>(scratch: string, { origin, layers }: Download, to: BlobsOfOrigin, run: () => Promise<T>): Promise<T> {
    const saved = this.#layers.of(origin)
    // If the runner is killed, the next runner reads in this file which layers to save.
    await writeFile(join(scratch, noteName), JSON.stringify({ origin, layers }))
    for (const digest of layers) await to.moveFrom(saved, digest)
    try {
      return await run()
    } catch (error) {
      for (const digest of layers) {
        await saved.linkFrom(to, digest)
        // An error is ignored, because most layers of a failed download are missing or incomplete and cannot be saved.
        await saved.take(digest, downloadsTo(scratch)).catch(() => {})
      }
      throw error
    }
  }

  /**
   * Removes the saved layers of interrupted downloads after a day without use. Then removes the least recently used layers until at
   * most `mostBytes` remain. Returns the bytes of the remaining layers.
   */
  sweep(mostBytes: number, givenBack: GivenBack): Promise<number> {
    return this.#layers.sweep(
      ({ usedAt }) => usedAt > Date.now() - keptForMs,
      mostBytes,
      (bytes, why) => givenBack.add('layers', why === 'unwanted' ? 'age' : 'pressure', bytes),
    )
  }
}
