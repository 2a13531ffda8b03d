// The SQL of snapshots. An organization sees its own and the general ones; its own hides a general one of the same name.
import type { Sql } from '../storage/database.ts'
import type { snapshotSorts, snapshotStates } from './schemas.ts'

export type Snapshot = {
  id: string
  organizationId: string | null
  general: boolean
  name: string
  state: (typeof snapshotStates)[number]
  errorReason: string | null
  /** What a runner calls it. */
  image: string
  imageName: string | null
  sandboxClass: string
  /** The OS user of its sandboxes unless they name one. */
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
}

type Row = {
  id: string
  organization_id: string | null
  general: boolean
  name: string
  state: Snapshot['state']
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
}

const readSnapshot = (row: Row): Snapshot => ({
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
})

const visible = (sql: Sql, organizationId: string) => sql`(organization_id = ${organizationId} or general)`

/** By id first, then by name. */
export const findSnapshotByIdOrName = async (
  sql: Sql,
  organizationId: string,
  idOrName: string,
): Promise<Snapshot | undefined> => {
  const [row] = await sql<Row[]>`
    select * from snapshots
    where ${visible(sql, organizationId)} and (id = ${idOrName} or name = ${idOrName})
    order by id = ${idOrName} desc, organization_id is null limit 1`
  return row && readSnapshot(row)
}

export type SnapshotListing = {
  page: number
  limit: number
  /** A part of the name, in any case. */
  name: string | undefined
  sort: (typeof snapshotSorts)[number]
  order: 'asc' | 'desc'
}

const sortColumns = { name: 'name', state: 'state', lastUsedAt: 'last_used_at', createdAt: 'created_at' } as const

export const listSnapshots = async (
  sql: Sql,
  organizationId: string,
  { page, limit, name, sort, order }: SnapshotListing,
): Promise<{ snapshots: Snapshot[]; total: number }> => {
  const where = sql`
    ${visible(sql, organizationId)} ${name === undefined ? sql`` : sql`and position(lower(${name}) in lower(name)) > 0`}`
  const direction = order === 'asc' ? sql`asc nulls first` : sql`desc nulls last`
  const rows = await sql<Row[]>`
    select * from snapshots where ${where}
    order by ${sql(sortColumns[sort])} ${direction}, id limit ${limit} offset ${(page - 1) * limit}`
  const [counted] = await sql<{ count: number }[]>`select count(*) from snapshots where ${where}`
  return { snapshots: rows.map(readSnapshot), total: counted?.count ?? 0 }
}
