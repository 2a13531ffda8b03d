// Reads snapshots. An organization sees its own snapshots and the general snapshots. If two of these have the same name, the
// organization sees only its own.
import { isIdLike } from '#src/control/id-like.ts'
import type { Progress } from '#src/wire/runner-link.ts'
import type { Piece, Sql } from '../storage/database.ts'
import type { SnapshotState } from './lifecycle.ts'
import type { snapshotSorts } from './schemas.ts'

export type Snapshot = {
  id: string
  organizationId: string | null
  general: boolean
  name: string
  state: SnapshotState
  errorReason: string | null
  /** Name of the snapshot's image on the runners. */
  image: string
  imageName: string | null
  sandboxClass: string
  /** Default OS user of sandboxes made from the snapshot. */
  osUser: string
  entrypoint: string[] | null
  cpu: number
  gpu: number
  memoryGiB: number
  diskGiB: number
  sizeGiB: number | null
  createdAt: Date
  updatedAt: Date
  lastUsedAt: Date | null
  sourceSandboxId: string | null
  dockerfile: string | null
  /** Hashes of the files that came with the definition. */
  contextHashes: string[] | null
  /** Digest of the image. Null if the image was built on this server or made from a sandbox. */
  digest: string | null
  progress: Progress | null
  /** The region in which sandboxes can be made from the snapshot. Null for general snapshots: all regions. */
  regionId: string | null
}

export type SnapshotRow = {
  id: string
  organization_id: string | null
  general: boolean
  name: string
  state: SnapshotState
  error_reason: string | null
  image: string
  image_name: string | null
  sandbox_class: string
  os_user: string
  entrypoint: string[] | null
  cpu: number
  gpu: number
  memory_gib: number
  disk_gib: number
  size: number | null
  created_at: Date
  updated_at: Date
  last_used_at: Date | null
  source_sandbox_id: string | null
  dockerfile: string | null
  context_hashes?: string[] | null
  digest?: string | null
  progress?: Progress | null
  region_id?: string | null
}

export const readSnapshot = (row: SnapshotRow): Snapshot => ({
  id: row.id,
  organizationId: row.organization_id,
  general: row.general,
  name: row.name,
  state: row.state,
  errorReason: row.error_reason,
  image: row.image,
  imageName: row.image_name,
  sandboxClass: row.sandbox_class,
  osUser: row.os_user,
  entrypoint: row.entrypoint,
  cpu: row.cpu,
  gpu: row.gpu,
  memoryGiB: row.memory_gib,
  diskGiB: row.disk_gib,
  sizeGiB: row.size,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  lastUsedAt: row.last_used_at,
  sourceSandboxId: row.source_sandbox_id,
  dockerfile: row.dockerfile,
  contextHashes: row.context_hashes ?? null,
  digest: row.digest ?? null,
  progress: row.progress ?? null,
  regionId: row.region_id ?? null,
})

const visible = (sql: Sql, organizationId: string) =>
  sql`(snapshots.organization_id = ${organizationId} or snapshots.general)`

const withImage = (sql: Sql) => sql`
  select snapshots.*, images.source #> '{contexts,hashes}' as context_hashes, images.digest, images.progress,
    images.region_id
  from snapshots left join images on images.name = snapshots.image`

/** SQL for the end of a query: selects a snapshot by its id, otherwise by its name. The organization's own snapshot comes first. */
const named = (sql: Sql, organizationId: string, idOrName: string) => sql`
  where ${visible(sql, organizationId)} and (snapshots.id = ${idOrName}
    or snapshots.name = ${isIdLike(idOrName) ? null : idOrName}::text)
  order by snapshots.id = ${idOrName} desc, snapshots.organization_id is null limit 1`

/** Finds a snapshot in any state. Returns `undefined` if the organization sees no snapshot with this id or name. */
export const findSnapshotByIdOrName = async (
  sql: Sql,
  organizationId: string,
  idOrName: string,
): Promise<Snapshot | undefined> => {
  const [row] = await sql<SnapshotRow[]>`${withImage(sql)} ${named(sql, organizationId, idOrName)}`
  return row && readSnapshot(row)
}

/**
 * SQL subquery that finds the id or the image of a snapshot. A query that contains the subquery need not read the snapshot first.
 */
export const snapshotColumn = (sql: Sql, column: 'id' | 'image', organizationId: string, idOrName: string): Piece =>
  sql`(select ${sql(column)} from snapshots ${named(sql, organizationId, idOrName)})`

type SnapshotListing = {
  page: number
  limit: number
  /** Filter by a part of the name, without regard to upper and lower case. */
  name: string | undefined
  sourceSandboxId: string | undefined
  sort: (typeof snapshotSorts)[number]
  order: 'asc' | 'desc'
}

const sortColumns = {
  name: 'snapshots.name',
  state: 'snapshots.state',
  lastUsedAt: 'snapshots.last_used_at',
  createdAt: 'snapshots.created_at',
} as const

export const listSnapshots = async (
  sql: Sql,
  organizationId: string,
  { page, limit, name, sourceSandboxId, sort, order }: SnapshotListing,
): Promise<{ snapshots: Snapshot[]; total: number }> => {
  const where = sql`
    ${visible(sql, organizationId)}
    ${name === undefined ? sql`` : sql`and position(lower(${name}) in lower(snapshots.name)) > 0`}
    ${sourceSandboxId === undefined ? sql`` : sql`and source_sandbox_id = ${sourceSandboxId}`}`
  const direction = order === 'asc' ? sql`asc nulls first` : sql`desc nulls last`
  const rows = await sql<SnapshotRow[]>`
    ${withImage(sql)} where ${where}
    order by ${sql(sortColumns[sort])} ${direction}, snapshots.id limit ${limit} offset ${(page - 1) * limit}`
  const [counted] = await sql<{ count: number }[]>`select count(*) from snapshots where ${where}`
  return { snapshots: rows.map(readSnapshot), total: counted?.count ?? 0 }
}
