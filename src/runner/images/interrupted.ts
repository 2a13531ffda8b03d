// Saves the complete layers of an interrupted download, for at most a day. A download is interrupted by a broken connection, a
// cancel or the end of the runner. The next download from the same repository then needs only the other layers. Layers are
// stored by origin and digest.
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

  /**
   * Saves the complete layers of downloads that ended because the runner was killed. Each download lists its layers in a file
   * before it begins (`saving`). A damaged file is ignored.
   */
  async open(scratches: string, blobs: Blobs): Promise<void> {
    await this.#layers.open()
    for (const name of await namesBelow(scratches)) {
      const scratch = join(scratches, name)
      try {
        const { origin, layers } = JSON.parse(await readFile(join(scratch, noteName), 'utf8')) as Download
        const saved = this.#layers.of(origin)
        for (const digest of layers) {
          // If the runner was killed while it unpacked the image, it had already moved the complete layers to the stored layers
          // (`blobs`). From there they are linked into `saved`.
          await saved.linkFrom(blobs.of(origin), digest)
          // skopeo, which downloads the layers, may write for another moment after the runner was killed. Its files are therefore
          // copied into `saved` and not moved.
          await saved.takeCopy(digest, downloadsTo(scratch))
        }
      } catch {}
    }
  }

  /**
   * Runs a download. Layers that an earlier failed download has saved need not be downloaded again. If this download fails, its
   * complete layers are saved.
   */
  async saving<T>(scratch: string, { origin, layers }: Download, to: BlobsOfOrigin, run: () => Promise<T>): Promise<T> {
    const saved = this.#layers.of(origin)
    // The list of layers is written before the download. If the runner is killed, the next runner reads in it which layers to
    // save.
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
   * Removes layers that were saved more than a day ago. Then removes the least recently used layers until the remaining layers
   * have at most `mostBytes`. Returns the total size in bytes of the remaining layers.
   */
  sweep(mostBytes: number, givenBack: GivenBack): Promise<number> {
    return this.#layers.sweep(
      ({ usedAt }) => usedAt > Date.now() - keptForMs,
      mostBytes,
      (bytes, why) => givenBack.add('layers', why === 'unwanted' ? 'age' : 'pressure', bytes),
    )
  }
}
