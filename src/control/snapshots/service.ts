// Snapshots: named images from which sandboxes are made. Calls treat a snapshot of another organization as if it did not exist.
import { noSnapshot } from '#src/problems.ts'
import type { Parts } from '../parts.ts'
import type { Sql, Transaction } from '../storage/database.ts'
import type { SnapshotsQuery } from './schemas.ts'
import { findSnapshotByIdOrName, listSnapshots, type Snapshot } from './store.ts'

export { type Snapshot, snapshotColumn } from './store.ts'

type SnapshotsParts = Pick<Parts, 'database'>

export const asView = (snapshot: Snapshot) => ({
  id: snapshot.id,
  ...(snapshot.organizationId === null ? {} : { organizationId: snapshot.organizationId }),
  general: snapshot.general,
  name: snapshot.name,
  ...(snapshot.imageName === null ? {} : { imageName: snapshot.imageName }),
  state: snapshot.state,
  size: snapshot.sizeGiB,
  entrypoint: snapshot.entrypoint,
  cpu: snapshot.cpu,
  gpu: snapshot.gpu,
  mem: snapshot.memoryGiB,
  disk: snapshot.diskGiB,
  errorReason: snapshot.errorReason,
  createdAt: snapshot.createdAt.toISOString(),
  updatedAt: snapshot.updatedAt.toISOString(),
  lastUsedAt: snapshot.lastUsedAt?.toISOString() ?? null,
  sourceSandboxId: snapshot.sourceSandboxId,
  sandboxClass: snapshot.sandboxClass,
  ...(snapshot.regionId === null ? {} : { regionIds: [snapshot.regionId] }),
  ...refOf(snapshot),
  ...(snapshot.progress === null ? {} : { progress: snapshot.progress }),
  ...(snapshot.dockerfile === null ? {} : { buildInfo: buildInfoOf(snapshot, snapshot.dockerfile) }),
})

/**
 * Returns the permanent reference of an image. An image that was made on this server has no digest, but its name is never reused.
 */
const refOf = ({ digest, state, image }: Snapshot) => {
  if (digest !== null) return { ref: digest }
  return state === 'active' || state === 'inactive' ? { ref: image } : {}
}

const buildInfoOf = ({ image, contextHashes, createdAt, updatedAt }: Snapshot, dockerfileContent: string) => ({
  dockerfileContent,
  ...(contextHashes === null ? {} : { contextHashes }),
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
  snapshotRef: image,
})

/** Finds a snapshot that the organization can see, in any state. */
export const findSnapshot = (sql: Sql, organizationId: string, idOrName: string): Promise<Snapshot | undefined> =>
  findSnapshotByIdOrName(sql, organizationId, idOrName)

const usedAtMostEveryMs = 60_000

/** Stores that the snapshot was used, at most once a minute. Skips a locked row, so that creates do not wait for each other. */
export const markUsed = async (transaction: Transaction, { id, lastUsedAt }: Snapshot, now: Date): Promise<void> => {
  if (lastUsedAt !== null && now.getTime() - lastUsedAt.getTime() < usedAtMostEveryMs) return
  await transaction`
    update snapshots set last_used_at = ${now}
    where id in (select id from snapshots where id = ${id} for update skip locked)`
}

export const viewSnapshot = async (parts: SnapshotsParts, organizationId: string, idOrName: string) => {
  const snapshot = await findSnapshot(parts.database.sql, organizationId, idOrName)
  if (snapshot === undefined) throw noSnapshot(idOrName)
  return asView(snapshot)
}

export const viewSnapshots = async ({ database }: SnapshotsParts, organizationId: string, query: SnapshotsQuery) => {
  const { page = 1, limit = 100, name, sourceSandboxId, sort = 'lastUsedAt', order = 'desc' } = query
  const listing = { page, limit, name, sourceSandboxId, sort, order }
  const { snapshots, total } = await listSnapshots(database.sql, organizationId, listing)
  return { items: snapshots.map(asView), total, page, totalPages: Math.ceil(total / limit) }
}
