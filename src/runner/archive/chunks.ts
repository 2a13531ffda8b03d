// Stores compressed chunks of archives, and fetches them. Each chunk is read back after it was written, while the disk still
// exists.
import { webcrypto } from 'node:crypto'
import { promisify } from 'node:util'
import { constants, zstdCompress } from 'node:zlib'
import { Damaged, inflate } from '../inflate.ts'
import { ArchiveFailed } from './failed.ts'
import type { KeptChunks } from './kept-chunks.ts'
import { type Chunk, maxStoredBytes } from './manifest.ts'
import type { ObjectStore } from './store.ts'

const compress = promisify(zstdCompress)

const level = { params: { [constants.ZSTD_c_compressionLevel]: 3 } }

/** Computes a hash in the thread pool, so that the main thread can serve sandboxes meanwhile. */
const hashAside = async (content: Buffer<ArrayBuffer>): Promise<string> =>
  Buffer.from(await webcrypto.subtle.digest('SHA-256', content)).toString('hex')

/** Stores a chunk, unless it is stored already, and reads it back. `kept`: chunks of earlier archives, which are not read again. */
export const keepChunk = async (
  store: ObjectStore,
  under: string,
  content: Buffer<ArrayBuffer>,
  { kept, signal }: { kept?: KeptChunks | undefined; signal?: AbortSignal | undefined } = {},
): Promise<Chunk> => {
  const chunk = { sha256: await hashAside(content), bytes: content.length }
  const keptBytes = kept?.get(chunk.sha256)
  if (keptBytes !== undefined) return { ...chunk, storedBytes: keptBytes }
  const key = `${under}${chunk.sha256}`
  const there = await store.get(key, maxStoredBytes, signal).catch(unlessDamaged)
  const stored = await compress(content, level)
  if (there?.equals(stored)) return { ...chunk, storedBytes: stored.length }
  await store.put(key, stored, signal)
  const back = await store.get(key, maxStoredBytes, signal)
  if (!back?.equals(stored))
    throw new ArchiveFailed('damaged', 'The archive store returned other data than was written to it.')
  return { ...chunk, storedBytes: stored.length }
}

/** Returns undefined if the stored chunk is damaged, so that the chunk is written again. Throws any other error. */
const unlessDamaged = (error: unknown): undefined => {
  if (!(error instanceof ArchiveFailed) || error.why !== 'damaged') throw error
}

/** Fetches a chunk as the object store has it: compressed and not verified. */
export const fetchChunk = async (
  store: ObjectStore,
  under: string,
  chunk: Chunk,
  signal?: AbortSignal,
): Promise<Buffer> => {
  const stored = await store.get(`${under}${chunk.sha256}`, maxStoredBytes, signal)
  if (stored === undefined) throw new ArchiveFailed('missing', `${nameOf(chunk)} is missing in the archive store.`)
  return stored
}

const nameOf = ({ sha256 }: Chunk) => `A part of the archive (${sha256.slice(0, 12)})`

export const damaged = (chunk: Chunk) =>
  new ArchiveFailed('damaged', `${nameOf(chunk)} is damaged in the archive store.`)

/** Yields the contents of stored chunks in order. Throws if the content of a chunk does not have the right hash. */
export async function* contentsOf(stored: AsyncIterable<Buffer>, chunks: readonly Chunk[]): AsyncGenerator<Buffer> {
  const pieces = inflate(stored, 'zstd')
  /** Decompressed bytes after the end of the current chunk. They are the beginning of the next chunk. */
  let over: Buffer = Buffer.alloc(0)
  const take = async (bytes: number): Promise<Buffer<ArrayBuffer> | undefined> => {
    const content = Buffer.alloc(bytes)
    let filled = 0
    while (filled < bytes) {
      if (over.length === 0) {
        const next = await pieces.next()
        if (next.done) return undefined
        over = next.value
      }
      const copied = over.copy(content, filled)
      over = over.subarray(copied)
      filled += copied
    }
    return content
  }
  try {
    for (const chunk of chunks) {
      const content = await take(chunk.bytes).catch((error: unknown) => {
        if (error instanceof Damaged) throw damaged(chunk)
        throw error
      })
      if (content === undefined || (await hashAside(content)) !== chunk.sha256) throw damaged(chunk)
      yield content
    }
    const last = chunks.at(-1)
    const isLonger = over.length > 0 || (await pieces.next().catch(() => ({ done: false }))).done !== true
    if (last !== undefined && isLonger) throw damaged(last)
  } finally {
    await pieces.return(undefined)
  }
}
