// Packs a disk into the object store. The caller may remove the local disk only after `packDisk` resolves. Interrupted packing
// can be repeated.
import { createHash } from 'node:crypto'
import type { WrittenArchive } from '#src/wire/runner-link.ts'
import { type BaseIdentity, nameOfContent } from '../images/base-identity.ts'
import { cutIntoChunks } from './chunk-borders.ts'
import { keepChunk } from './chunks.ts'
import { ArchiveFailed } from './failed.ts'
import type { KeptChunks } from './kept-chunks.ts'
import { chunksOf, manifestKey, type Owner, ownerOf } from './keys.ts'
import {
  type Chunk,
  hashOf,
  type Manifest,
  maxChunks,
  maxManifestBytes,
  readManifest,
  storedBytesOf,
  writeManifest,
} from './manifest.ts'
import type { ObjectStore } from './store.ts'
import { type Packable, readDisk } from './tar.ts'

/** A complete archive. `bytes`: size of the tar stream. `storedBytes`: size of the compressed chunks in the object store. */
export type Archive = WrittenArchive

type PackParts = Owner & {
  store: ObjectStore
  archiveId: string
  /** The disk to pack: that of a stopped or frozen sandbox, or that of an image. Nothing may write to the disk meanwhile. */
  disk: Packable
  base?: BaseIdentity | undefined
  /** Hash that the tar stream must have. Otherwise packing fails and no archive is made. */
  expected?: string
  /**
   * Maximum number of chunks that are compressed and stored at the same time. Default: 3. Each chunk takes twice its size in
   * memory.
   */
  chunksAtOnce?: number
  /** Chunks that earlier archives have stored and verified. They are neither stored again nor read back. */
  kept?: KeptChunks
  /**
   * Called after each stored chunk. `bytes`: how much of the disk's tar stream is stored. `storedBytes`: the compressed size of
   * that part.
   */
  onProgress?: (safe: { bytes: number; storedBytes: number }) => void
  signal?: AbortSignal
}

export const packDisk = async (parts: PackParts): Promise<Archive> => {
  const { store, archiveId, disk, base, expected, chunksAtOnce = 3, kept, onProgress, signal } = parts
  const owner = ownerOf(parts)
  // This call throws, before any work, if one of the ids cannot be a part of a key.
  manifestKey(owner, archiveId)
  const whole = createHash('sha256')
  const chunks: Chunk[] = []
  const safe = { bytes: 0, storedBytes: 0 }
  const keep = async (content: Buffer<ArrayBuffer>, at: number) => {
    const chunk = await keepChunk(store, chunksOf(owner), content, { kept, signal })
    chunks[at] = chunk
    safe.bytes += chunk.bytes
    safe.storedBytes += chunk.storedBytes
    onProgress?.({ ...safe })
  }

  const underWay = new Set<Promise<void>>()
  const failures: unknown[] = []
  let count = 0
  try {
    for await (const content of cutIntoChunks(alsoHashed(readDisk(disk, signal), whole))) {
      if (count === maxChunks) throw new ArchiveFailed('disk', 'The disk has more data than an archive can hold.')
      const keeping = keep(content, count++)
        .catch((error: unknown) => void failures.push(error))
        .finally(() => underWay.delete(keeping))
      underWay.add(keeping)
      if (underWay.size >= chunksAtOnce) await Promise.race(underWay)
      if (failures.length > 0) break
    }
  } finally {
    await Promise.all(underWay)
  }
  if (failures.length > 0) throw failures[0]
  const sha256 = whole.digest('hex')
  if (expected !== undefined && sha256 !== expected)
    throw new ArchiveFailed('damaged', 'The files of a base image on this host have changed.')
  const head = { ...owner, archiveId, createdAt: new Date().toISOString(), bytes: safe.bytes, sha256 }
  const written: Manifest = { ...head, ...(base ? { base } : {}), chunks }
  return describe(await keepManifest(store, written, signal), written)
}

async function* alsoHashed(pieces: AsyncIterable<Buffer>, hash: { update(piece: Buffer): void }) {
  for await (const piece of pieces) {
    hash.update(piece)
    yield piece
  }
}

const describe = (content: Buffer, manifest: Manifest): Archive => ({
  id: manifest.archiveId,
  sha256: hashOf(content),
  bytes: manifest.bytes,
  storedBytes: storedBytesOf(manifest),
  ...(manifest.base?.content ? { base: nameOfContent(manifest.base.content) } : {}),
})

/** Writes the manifest. An earlier manifest for the same tar stream stays, because control may have stored its hash. */
const keepManifest = async (store: ObjectStore, manifest: Manifest, signal: AbortSignal | undefined) => {
  const key = manifestKey(manifest, manifest.archiveId)
  const there = await store.get(key, maxManifestBytes, signal)
  if (there !== undefined && isOfSame(there, manifest)) return there
  const content = writeManifest(manifest)
  await store.put(key, content, signal)
  if (!(await store.get(key, maxManifestBytes, signal))?.equals(content)) {
    throw new ArchiveFailed('damaged', 'The archive store returned other data than was written to it.')
  }
  return content
}

const isOfSame = (content: Buffer, manifest: Manifest): boolean => {
  try {
    const { createdAt } = readManifest(content, ownerOf(manifest), manifest.archiveId)
    return writeManifest({ ...manifest, createdAt }).equals(content)
  } catch {
    return false
  }
}

/** Finds a complete archive with this id. Used only by tests. */
export const findArchive = async (
  store: ObjectStore,
  sandboxId: string,
  archiveId: string,
  signal?: AbortSignal,
): Promise<Archive | undefined> => {
  const content = await store.get(manifestKey({ sandboxId }, archiveId), maxManifestBytes, signal)
  return content && describe(content, readManifest(content, { sandboxId }, archiveId))
}
