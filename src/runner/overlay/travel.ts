// Templates travel through the store: the runner that made one packs it, and other runners bring it. A template never changes,
// so an interrupted packing can be repeated, and each attempt writes the same archive.
import { type Archive, packDisk } from '../archive/pack.ts'
import type { ObjectStore } from '../archive/store.ts'
import { unpackDisk } from '../archive/unpack.ts'
import type { StoragePool } from './pool.ts'

type Parts = { pool: StoragePool; launcher: string; store: ObjectStore; image: string; signal?: AbortSignal }

/** An image has one archive, because it never changes. */
const archiveId = 'template'

export const packTemplate = ({ pool, store, image, signal }: Omit<Parts, 'launcher'>): Promise<Archive> =>
  packDisk({ store, image, archiveId, disk: pool.diskOfTemplate(image), ...(signal ? { signal } : {}) })

/** Brings a template, completely or not at all. The name of its base image is in it. */
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
