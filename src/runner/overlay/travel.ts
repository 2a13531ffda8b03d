// Copies templates from one runner to others through the object store. The runner that made a template packs it into an
// archive; other runners unpack it. A template never changes, so an interrupted packing can be repeated, and each attempt
// writes the same archive.
import { type Archive, packDisk } from '../archive/pack.ts'
import type { ObjectStore } from '../archive/store.ts'
import { unpackDisk } from '../archive/unpack.ts'
import type { StoragePool } from './pool.ts'

type Parts = { pool: StoragePool; launcher: string; store: ObjectStore; image: string; signal?: AbortSignal }

/** Id of each template's archive. A template has only one archive, because it never changes. */
const archiveId = 'template'

export const packTemplate = ({ pool, store, image, signal }: Omit<Parts, 'launcher'>): Promise<Archive> =>
  packDisk({ store, image, archiveId, disk: pool.diskOfTemplate(image), ...(signal ? { signal } : {}) })

/** Copies a template from the store into the pool, completely or not at all. The archive contains the name of the base image. */
export const bringTemplate = async (
  { pool, launcher, store, image, signal }: Parts,
  sha256: string,
  mostGiB: number,
  onProgress: (done: { bytes: number; of: number }) => void,
): Promise<void> => {
  if ((await pool.baseOf({ template: image })) !== undefined) return
  const archive = { id: archiveId, sha256 }
  await pool.fillTemplate(image, mostGiB, (disk) =>
    unpackDisk({ launcher, store, image, archive, disk, onProgress, ...(signal ? { signal } : {}) }),
  )
}
