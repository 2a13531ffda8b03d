// Reads and writes `content.json` beside the files of an image. It contains the hash of the files and a random number, from which
// the name of the files in the store is computed. The store's functions that images need are declared here too.
import { readFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type BaseContent, readContent } from './base-identity.ts'

export type BringBase = {
  content: BaseContent
  /** The directory to make. The directory above it exists. */
  rootfs: string
  mostBytes: number
  signal: AbortSignal
  onProgress: (done: { bytes: number; of: number }) => void
}

/** The archive store, as far as bases need it. */
export type BaseTravel = {
  /** Returns the hash of the tar stream of a directory. */
  hash: (rootfs: string) => Promise<string>
  /**
   * Puts an image's files into the store, unless they are there. Undefined if the store would be lost together with this host: then
   * the files are no safer in the store.
   */
  keep: ((content: BaseContent, rootfs: string) => Promise<void>) | undefined
  bring: (request: BringBase) => Promise<void>
}

/**
 * Where the files of an image are on this host. `directory`: the directory that contains `rootfs`, in which the files are. `tree`:
 * the name of these files on this host; images with the same layers share one tree.
 */
export type BasePlace = { directory: string; tree: string }

const contentName = 'content.json'

/**
 * Writes `content.json` beside the files of an image. It contains `content` and the name of the tree, because a new tree can
 * begin as a copy of another tree's directory, with the `content.json` of that tree.
 */
export const writeContent = async ({ directory, tree }: BasePlace, content: BaseContent): Promise<void> => {
  const path = join(directory, contentName)
  await writeFile(`${path}.new`, JSON.stringify({ tree, ...content }), { mode: 0o600, flush: true })
  await rename(`${path}.new`, path)
}

/** Reads the hash and the random number of the files from `content.json`. Undefined if the files have not been hashed. */
export const readContentIn = ({ directory, tree }: BasePlace): BaseContent | undefined => {
  try {
    const stored = JSON.parse(readFileSync(join(directory, contentName), 'utf8')) as { tree?: unknown }
    return stored.tree === tree ? readContent(stored) : undefined
  } catch {
    return undefined
  }
}
