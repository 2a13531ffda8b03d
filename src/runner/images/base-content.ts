// Reads and writes `content.json` beside the files of an image. It contains the hash of the files and a random number, from which
// the name of the files in the object store is computed. Declares also which functions of the object store base images need.
import { readFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type BaseContent, readContent } from './base-identity.ts'

export type BringBase = {
  content: BaseContent
  /** Directory to make for the files of the base image. Its parent directory exists. */
  rootfs: string
  mostBytes: number
  signal: AbortSignal
  onProgress: (done: { bytes: number; of: number }) => void
}

/** Functions of the object store that base images need. */
export type BaseTravel = {
  /** Packs a directory as a tar stream, and returns the hash of the stream. */
  hash: (rootfs: string) => Promise<string>
  /**
   * Stores an image's files in the object store, unless they are stored already. Undefined if the object store is on this host's
   * own disk: a loss of the host would lose such a copy too.
   */
  keep: ((content: BaseContent, rootfs: string) => Promise<void>) | undefined
  bring: (request: BringBase) => Promise<void>
}

/**
 * Where the unpacked files of an image (its tree) are on this host: in the subdirectory `rootfs` of `directory`. `tree`: the name
 * of the tree. Images with the same layers share one tree.
 */
export type BasePlace = { directory: string; tree: string }

const contentName = 'content.json'

/**
 * Writes `content.json` beside the files of an image: `content` and the name of the image's tree. A copy of the directory for
 * another tree contains this file too. The tree's name in it then shows that the hash is not the hash of the other tree.
 */
export const writeContent = async ({ directory, tree }: BasePlace, content: BaseContent): Promise<void> => {
  const path = join(directory, contentName)
  await writeFile(`${path}.new`, JSON.stringify({ tree, ...content }), { mode: 0o600, flush: true })
  await rename(`${path}.new`, path)
}

/** Reads the hash and the random number of the files from `content.json`. Undefined if this tree's files have not been hashed. */
export const readContentIn = ({ directory, tree }: BasePlace): BaseContent | undefined => {
  try {
    const stored = JSON.parse(readFileSync(join(directory, contentName), 'utf8')) as { tree?: unknown }
    return stored.tree === tree ? readContent(stored) : undefined
  } catch {
    return undefined
  }
}
