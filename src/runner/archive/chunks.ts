// Chunks in the store: compressed, and believed only after they were read back and hash to their name.
import { webcrypto } from 'node:crypto'
import { promisify } from 'node:util'
import { constants, zstdCompress, zstdDecompress } from 'node:zlib'
import { ArchiveFailed } from './failed.ts'
import { type Chunk, maxStoredBytes } from './manifest.ts'
import type { ObjectStore } from './store.ts'

const compress = promisify(zstdCompress)
const decompress = promisify(zstdDecompress)

const level = { params: { [constants.ZSTD_c_compressionLevel]: 3 } }

/** Off the main thread, which has sandboxes to serve. */
const hashAside = async (content: Buffer<ArrayBuffer>): Promise<string> =>
  Buffer.from(await webcrypto.subtle.digest('SHA-256', content)).toString('hex')

const unpacked = async (stored: Buffer, { sha256, bytes }: Pick<Chunk, 'sha256' | 'bytes'>) => {
  const content = await decompress(stored, { maxOutputLength: bytes }).catch(() => undefined)
  if (content?.length !== bytes) return undefined
  return (await hashAside(content as Buffer<ArrayBuffer>)) === sha256 ? content : undefined
}

/** Puts it below a prefix, unless a try before this one did; returns when the store has given it back unharmed. */
export const keepChunk = async (
  store: ObjectStore,
  under: string,
  content: Buffer<ArrayBuffer>,
  signal?: AbortSignal,
): Promise<Chunk> => {
  const chunk = { sha256: await hashAside(content), bytes: content.length }
  const key = `${under}${chunk.sha256}`
  const there = await store.get(key, maxStoredBytes, signal).catch(unlessDamaged)
  if (there && (await unpacked(there, chunk))) return { ...chunk, storedBytes: there.length }
  const stored = await compress(content, level)
  await store.put(key, stored, signal)
  const back = await store.get(key, maxStoredBytes, signal)
  if (!back?.equals(stored))
    throw new ArchiveFailed('damaged', 'The archive store did not give back what it was given.')
  return { ...chunk, storedBytes: stored.length }
}

/** One that is there but larger than any chunk is written anew. */
const unlessDamaged = (error: unknown): undefined => {
  if (!(error instanceof ArchiveFailed) || error.why !== 'damaged') throw error
}

export const fetchChunk = async (
  store: ObjectStore,
  under: string,
  chunk: Chunk,
  signal?: AbortSignal,
): Promise<Buffer> => {
  const stored = await store.get(`${under}${chunk.sha256}`, maxStoredBytes, signal)
  const name = `A part of the archive (${chunk.sha256.slice(0, 12)})`
  if (stored === undefined) throw new ArchiveFailed('missing', `${name} is missing in the archive store.`)
  const content = await unpacked(stored, chunk)
  if (content === undefined) throw new ArchiveFailed('damaged', `${name} is damaged in the archive store.`)
  return content
}
