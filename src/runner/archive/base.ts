// Puts the files of base images into the store, and fetches them from there (docs/adr/0046). An archive of a disk that was made on
// a base contains the hash of the base's files, packed as a tar stream. So files in the store that are not those of the base are
// refused.
import { createHash } from 'node:crypto'
import { type BaseContent, nameOfContent } from '../images/base-identity.ts'
import { manifestKey } from './keys.ts'
import { maxManifestBytes, readManifest } from './manifest.ts'
import { packDisk } from './pack.ts'
import type { ObjectStore } from './store.ts'
import { readDisk } from './tar.ts'

/** A base has one archive, because it never changes. */
export const archiveIdOfBase = 'base'

/** Returns the hash of the tar stream of an image's files. */
export const hashFiles = async (rootfs: string): Promise<string> => {
  const hash = createHash('sha256')
  for await (const piece of readDisk({ rootfs })) hash.update(piece)
  return hash.digest('hex')
}

type StoreParts = { store: ObjectStore; content: BaseContent; rootfs: string }

/** Puts a base into the store, unless it is there. */
export const storeBase = async ({ store, content, rootfs }: StoreParts): Promise<void> => {
  const image = nameOfContent(content)
  const there = await store.get(manifestKey({ image }, archiveIdOfBase), maxManifestBytes)
  if (there !== undefined && isOf(there, content)) return
  await packDisk({ store, image, archiveId: archiveIdOfBase, disk: { rootfs }, expected: content.sha256 })
}

/** Returns whether this is the manifest of a base. A manifest is written last, and removed first. */
const isOf = (manifest: Buffer, content: BaseContent): boolean => {
  try {
    return readManifest(manifest, { image: nameOfContent(content) }, archiveIdOfBase).sha256 === content.sha256
  } catch {
    return false
  }
}
