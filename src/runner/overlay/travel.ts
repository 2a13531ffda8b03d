// Copies templates from one runner to others through the object store. The runner that made a template packs it into an
// archive; other runners unpack it. A template never changes, so an interrupted packing can be repeated, and each attempt
// writes the same archive.
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
   * Finds the base image of the template on this host, or fetches its files from the object store. Absent: the template keeps the
   * name of the base image that its archive contains, and nothing is fetched.
   */
  withBase?: ImageStore['withBase'] | undefined
  signal: AbortSignal
}

/** Id of each template's archive. A template has only one archive, because it never changes. */
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
