// The SQL of warm pools.
import { randomUUID } from 'node:crypto'
import { isDuplicate, type Sql } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'

export type WarmPool = {
  id: string
  /** The organization that owns the pool. Null: one of the server's own pools. */
  organizationId: string | null
  snapshotId: string
  snapshot: string
  regionId: string
  size: number
  /** Number of the pool's sandboxes that can be claimed now. */
  currentSize: number
  cpu: number
  memoryGiB: number
  diskGiB: number
  osUser: string
  errorReason: string | null
  createdAt: Date
  updatedAt: Date
}

const columns = (sql: Sql) => sql`
  select warm_pools.id, warm_pools.organization_id as "organizationId", snapshot_id as "snapshotId",
    snapshots.name as snapshot, region_id as "regionId", warm_pools.size, cpu, memory_gib as "memoryGiB",
    disk_gib as "diskGiB", os_user as "osUser", warm_pools.error_reason as "errorReason",
    warm_pools.created_at as "createdAt", warm_pools.updated_at as "updatedAt",
    (select count(*) from sandboxes join runners on runners.id = runner_id
      where warm_pool_id = warm_pools.id and sandboxes.state = 'started' and runners.state = 'ready') as "currentSize"
  from warm_pools join snapshots on snapshots.id = snapshot_id`

export const listPools = async (sql: Sql, organizationId: string): Promise<WarmPool[]> =>
  await sql<WarmPool[]>`
    ${columns(sql)} where warm_pools.organization_id = ${organizationId} order by warm_pools.created_at, warm_pools.id`

export const findPool = async (sql: Sql, organizationId: string, id: string): Promise<WarmPool | undefined> => {
  const [row] = await sql<WarmPool[]>`
    ${columns(sql)} where warm_pools.organization_id = ${organizationId} and warm_pools.id = ${id}`
  return row
}

type NewPool = { organizationId: string; snapshotId: string; regionId: string; size: number }

/** Inserts a pool. A snapshot can have one pool per region; a second pool is refused with 409. */
export const insertPool = async (sql: Sql, pool: NewPool, now: Date): Promise<string> => {
  const id = randomUUID()
  try {
    await sql`
      insert into warm_pools (id, organization_id, snapshot_id, region_id, size, demand_at, created_at, updated_at)
      values (${id}, ${pool.organizationId}, ${pool.snapshotId}, ${pool.regionId}, ${pool.size}, ${now}, ${now}, ${now})`
    return id
  } catch (error) {
    if (!isDuplicate(error)) throw error
    throw new Problem('already_exists', 'A warm pool of this snapshot already exists in this region.', {
      cause: error,
    })
  }
}

export const writeSize = async (sql: Sql, id: string, size: number, now: Date): Promise<void> => {
  await sql`
    update warm_pools set size = ${size}, error_reason = null, not_before = null, updated_at = ${now} where id = ${id}`
}

export const removePool = async (sql: Sql, id: string): Promise<void> => {
  await sql`delete from warm_pools where id = ${id}`
}
