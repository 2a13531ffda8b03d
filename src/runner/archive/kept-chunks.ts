// Finds the chunks of a sandbox that earlier archives have stored. A save does not verify these chunks. Otherwise the runner would
// download the whole disk at each stop. An archive verifies every chunk, because the disk is removed afterwards.
import { ArchiveFailed } from './failed.ts'
import { chunksOf, manifestsOf, type Owner, ownerOf } from './keys.ts'
import { maxManifestBytes, readManifest } from './manifest.ts'
import type { ObjectStore } from './store.ts'

/** Compressed size in bytes of each chunk in the object store, by the hash of the chunk. */
export type KeptChunks = ReadonlyMap<string, number>

/** Returns the chunks of complete archives that the object store lists with the right size. */
export const findKept = async ({
  store,
  signal,
  ...parts
}: Owner & { store: ObjectStore; signal?: AbortSignal }): Promise<KeptChunks> => {
  const owner = ownerOf(parts)
  const named = new Map<string, number>()
  for await (const { key } of store.list(manifestsOf(owner), signal)) {
    for (const { sha256, storedBytes } of await chunksIn(store, owner, key, signal)) named.set(sha256, storedBytes)
  }
  const kept = new Map<string, number>()
  if (named.size === 0) return kept
  const place = chunksOf(owner)
  for await (const { key, bytes } of store.list(place, signal)) {
    const sha256 = key.slice(place.length)
    if (named.get(sha256) === bytes) kept.set(sha256, bytes)
  }
  return kept
}

/** Returns the chunks of a manifest, or no chunks if the manifest is missing or damaged. */
const chunksIn = async (store: ObjectStore, owner: Owner, key: string, signal: AbortSignal | undefined) => {
  try {
    const content = await store.get(key, maxManifestBytes, signal)
    const archiveId = key.slice(manifestsOf(owner).length).replace(/\.json$/, '')
    return content === undefined ? [] : readManifest(content, owner, archiveId).chunks
  } catch (error) {
    if (error instanceof ArchiveFailed && error.why === 'damaged') return []
    throw error
  }
}
