// Reads and writes `content.json` beside the files of an image: the files' hash, and a random number for their name in the object
// store.
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
   * Stores an image's files in the object store, unless they are there. Undefined if the object store is on this host's disk: it
   * could then be lost with the host.
   */
  keep: ((content: BaseContent, rootfs: string) => Promise<void>) | undefined
  bring: (request: BringBase) => Promise<void>
}

/** Where the unpacked files of an image are: in `rootfs` of `directory`. Images with the same layers share one `tree`. */
export type BasePlace = { directory: string; tree: string }

const contentName = 'content.json'

/**
 * Writes the hash of a tree's files to `content.json`, with the tree's name. If the directory is copied to make a different tree,
 * the name in the copy is wrong, so `readContentIn` ignores the hash.
 */
export const writeContent = async ({ directory, tree }: BasePlace, content: BaseContent): Promise<void> => {
  const path = join(directory, contentName)
  await writeFile(`${path}.new`, JSON.stringify({ tree, ...content }), { mode: 0o600, flush: true })
  await rename(`${path}.new`, path)
}

/**
 * Reads two values from `content.json`: the hash of this tree's files, and the salt. Undefined if the files have not been hashed.
 */
export const readContentIn = ({ directory, tree }: BasePlace): BaseContent | undefined => {
  try {
    const stored = JSON.parse(readFileSync(join(directory, contentName), 'utf8')) as { tree?: unknown }
    return stored.tree === tree ? readContent(stored) : undefined
  } catch {
    return undefined
  }
}
