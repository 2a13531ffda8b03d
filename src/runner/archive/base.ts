// Stores and fetches the files of base images (docs/adr/0046). A disk's archive contains the hash of its base's tar stream. Fetched
// files with another hash are refused.
import { createHash } from 'node:crypto'
import { type BaseContent, nameOfContent } from '../images/base-identity.ts'
import { manifestKey } from './keys.ts'
import { maxManifestBytes, readManifest } from './manifest.ts'
import { packDisk } from './pack.ts'
import type { ObjectStore } from './store.ts'
import { readDisk } from './tar.ts'

/** Id of the archive of a base image. A base image has only one archive, because it never changes. */
export const archiveIdOfBase = 'base'

/** Packs the files of an image as a tar stream, and returns the hash of the stream. */
export const hashFiles = async (rootfs: string): Promise<string> => {
  const hash = createHash('sha256')
  for await (const piece of readDisk({ rootfs })) hash.update(piece)
  return hash.digest('hex')
}

type StoreParts = { store: ObjectStore; content: BaseContent; rootfs: string }

/** Stores the files of a base image in the object store, unless they are stored already. */
export const storeBase = async ({ store, content, rootfs }: StoreParts): Promise<void> => {
  const image = nameOfContent(content)
  const there = await store.get(manifestKey({ image }, archiveIdOfBase), maxManifestBytes)
  if (there !== undefined && isOf(there, content)) return
  await packDisk({ store, image, archiveId: archiveIdOfBase, disk: { rootfs }, expected: content.sha256 })
}

/**
 * Whether this is the manifest of the base image. The archive is then complete, because a manifest is written last and removed
 * first.
 */
const isOf = (manifest: Buffer, content: BaseContent): boolean => {
  try {
    return readManifest(manifest, { image: nameOfContent(content) }, archiveIdOfBase).sha256 === content.sha256
  } catch {
    return false
  }
}
