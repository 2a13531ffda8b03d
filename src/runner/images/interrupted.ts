// Keeps the complete layers of a download that was interrupted by a broken connection, a cancel, or the end of the runner. The
// next download from the same repository uses these layers. They are stored by origin and digest for at most a day.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Blobs, type BlobsOfOrigin } from './blobs.ts'
import { namesBelow } from './files.ts'
import type { GivenBack } from './given-back.ts'

type Download = { origin: string; layers: string[] }

const noteName = 'download.json'
const keptForMs = 24 * 3600_000

/** Directory in which the downloading program puts complete layers. */
const downloadsTo = (scratch: string) => join(scratch, 'work/blobs/sha256')

export class Interrupted {
  readonly #layers: Blobs

  constructor(directory: string) {
    this.#layers = new Blobs(directory)
  }

  /**
   * Saves the complete layers of downloads whose runner was killed. Each download wrote a note with its layers; a damaged note is
   * ignored.
   */
  async open(scratches: string, blobs: Blobs): Promise<void> {
    await this.#layers.open()
    for (const name of await namesBelow(scratches)) {
      const scratch = join(scratches, name)
      try {
        const { origin, layers } = JSON.parse(await readFile(join(scratch, noteName), 'utf8')) as Download
        const saved = this.#layers.of(origin)
        for (const digest of layers) {
          // The layer is complete if it was being unpacked when the runner was killed.
          await saved.linkFrom(blobs.of(origin), digest)
          // The downloading program may continue to write for a moment after its runner is killed. Therefore its files are
          // copied, not moved.
          await saved.takeCopy(digest, downloadsTo(scratch))
        }
      } catch {}
    }
  }

  /**
   * Runs a download. The download may use layers that an earlier failed download has saved. If the download fails, its complete
   * layers are saved.
   */
  async saving<T>(scratch: string, { origin, layers }: Download, to: BlobsOfOrigin, run: () => Promise<T>): Promise<T> {
    const saved = this.#layers.of(origin)
    // Write the note before the download, so that after a kill the next runner knows which layers to save.
    await writeFile(join(scratch, noteName), JSON.stringify({ origin, layers }))
    for (const digest of layers) await to.moveFrom(saved, digest)
    try {
      return await run()
    } catch (error) {
      for (const digest of layers) {
        await saved.linkFrom(to, digest)
        // Ignore the error: most layers of a failed download are missing or incomplete.
        await saved.take(digest, downloadsTo(scratch)).catch(() => {})
      }
      throw error
    }
  }

  /**
   * Removes layers that were saved more than a day ago. Then removes the least recently used layers until `mostBytes` is not
   * exceeded. Returns the total size in bytes of the remaining layers.
   */
  sweep(mostBytes: number, givenBack: GivenBack): Promise<number> {
    return this.#layers.sweep(
      ({ usedAt }) => usedAt > Date.now() - keptForMs,
      mostBytes,
      (bytes, why) => givenBack.add('layers', why === 'unwanted' ? 'age' : 'pressure', bytes),
    )
  }
}
