// Copies templates between runners, as archives in the object store. A template never changes, so an interrupted packing can be
// repeated.
import type { Progress } from '#src/wire/runner-link.ts'
import { type Archive, packDisk } from '../archive/pack.ts'
import type { ObjectStore } from '../archive/store.ts'
import { baseOfArchive, unpackDisk } from '../archive/unpack.ts'
import type { BaseIdentity } from '../images/base-identity.ts'
import type { ImageStore } from '../images/store.ts'
import type { StoragePool } from './pool.ts'

type Parts = {
  pool: StoragePool
  launcher: string
  store: ObjectStore
  image: string
  /**
   * Finds the template's base image on this host, or fetches its files from the object store. Absent: no base image is fetched.
   */
  withBase?: ImageStore['withBase'] | undefined
  signal: AbortSignal
}

/** Id of each template's archive. A template has only one archive, because a template never changes. */
const archiveId = 'template'

export const packTemplate = ({
  pool,
  store,
  image,
  base,
  signal,
}: Pick<Parts, 'pool' | 'store' | 'image'> & {
  base?: BaseIdentity | undefined
  signal?: AbortSignal
}): Promise<Archive> =>
  packDisk({ store, image, archiveId, disk: pool.diskOfTemplate(image), base, ...(signal ? { signal } : {}) })

/** Unpacks a template from its archive in the object store into the pool, completely or not at all. */
export const bringTemplate = async (
  { pool, launcher, store, image, withBase, signal }: Parts,
  sha256: string,
  mostGiB: number,
  onProgress: (progress: Progress) => void,
): Promise<void> => {
  if ((await pool.baseOf({ template: image })) !== undefined) return
  const archive = { id: archiveId, sha256 }
  const parts = { store, image, archive, signal }
  const bringOver = (below?: string) =>
    pool.fillTemplate(image, mostGiB, (disk) =>
      unpackDisk({
        ...{ ...parts, launcher, disk },
        onProgress: ({ bytes, of }) =>
          onProgress({ step: 'bringing', percent: Math.min(99, Math.floor((bytes / Math.max(of, 1)) * 100)) }),
        ...(below === undefined ? {} : { below }),
      }),
    )
  const base = await baseOfArchive(parts)
  await (base === undefined || withBase === undefined ? bringOver() : withBase(base, { signal, onProgress }, bringOver))
}
