// Removes objects that no archive needs, a manifest before its chunks. So every stored manifest has all of its chunks. Must not
// run while the sandbox's disk is being packed. The runner runs only one verb per sandbox at a time.
import { inParallel } from '#src/kit/in-parallel.ts'
import { ArchiveFailed } from './failed.ts'
import { chunkKey, chunksOf, manifestKey, manifestsOf, type Owner, ownerOf, prefixOf } from './keys.ts'
import { maxManifestBytes, readManifest } from './manifest.ts'
import type { ObjectStore } from './store.ts'

type RemoveParts = Owner & {
  store: ObjectStore
  /** The id of the archive to keep. Absent: all archives are removed. */
  keep?: string
  signal?: AbortSignal
}

const atOnce = 8
const batchSize = 256

/** Removes the archives of a sandbox or an image, except `keep`. An interrupted call can be repeated. */
export const removeArchives = async ({ store, keep, signal, ...parts }: RemoveParts): Promise<void> => {
  const owner = ownerOf(parts)
  const needed = keep === undefined ? new Set<string>() : await keysOf(store, owner, keep, signal)
  const places = keep === undefined ? [manifestsOf(owner), prefixOf(owner)] : [manifestsOf(owner), chunksOf(owner)]
  for (const place of places) await removeBelow(store, place, needed, signal)
}

/** Returns the keys of all objects of the archive `keep`. Throws if the archive's manifest cannot be read. */
const keysOf = async (store: ObjectStore, owner: Owner, keep: string, signal: AbortSignal | undefined) => {
  const key = manifestKey(owner, keep)
  const content = await store.get(key, maxManifestBytes, signal)
  if (content === undefined) throw new ArchiveFailed('missing', 'The archive that must be kept is missing.')
  const { chunks } = readManifest(content, owner, keep)
  return new Set([key, ...chunks.map(({ sha256 }) => chunkKey(owner, sha256))])
}

const removeBelow = async (
  store: ObjectStore,
  place: string,
  needed: ReadonlySet<string>,
  signal: AbortSignal | undefined,
): Promise<void> => {
  let batch: string[] = []
  const flush = async () => {
    await inParallel(atOnce, batch, (key) => store.remove(key, signal))
    batch = []
  }
  for await (const { key } of store.list(place, signal)) {
    if (!needed.has(key)) batch.push(key)
    if (batch.length === batchSize) await flush()
  }
  await flush()
}
