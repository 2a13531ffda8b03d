// The SQL of quotas: the rows of `region_quotas`, and the limits in columns of `organizations`.
import type { Sql, Transaction } from '#src/control/storage/database.ts'

/** The key of a quota row: an organization, a region, a class of sandboxes. */
export type Place = { organizationId: string; regionId: string; sandboxClass: string }

export type RegionQuotaRow = {
  organization_id: string
  region_id: string
  sandbox_class: string
  total_cpu_quota: number | null
  total_memory_quota: number | null
  total_disk_quota: number | null
  total_gpu_quota: number | null
  max_cpu_per_sandbox: number | null
  max_memory_per_sandbox: number | null
  max_disk_per_sandbox: number | null
  max_disk_per_non_ephemeral_sandbox: number | null
  max_cpu_per_gpu: number | null
  max_memory_per_gpu: number | null
  max_disk_per_gpu: number | null
  max_sandbox_lifespan: number | null
  allowed_gpu_types: string[] | null
}

export const listRegionQuotas = (sql: Sql, organizationId: string): Promise<RegionQuotaRow[]> =>
  sql<RegionQuotaRow[]>`select * from region_quotas where organization_id = ${organizationId} limit 10000`

/** Lists the organization's quotas in a region, one for each class of sandboxes. */
export const listRegionQuotasIn = (sql: Sql, organizationId: string, regionId: string): Promise<RegionQuotaRow[]> =>
  sql<RegionQuotaRow[]>`
    select * from region_quotas where organization_id = ${organizationId} and region_id = ${regionId}`

export const findRegionQuota = async (
  sql: Sql,
  { organizationId, regionId, sandboxClass }: Place,
): Promise<RegionQuotaRow | undefined> => {
  const [row] = await sql<RegionQuotaRow[]>`
    select * from region_quotas
    where organization_id = ${organizationId} and region_id = ${regionId} and sandbox_class = ${sandboxClass}`
  return row
}

/** Returns whether this organization can get a quota in the region. Locks the region against deletion. */
export const holdRegion = async (
  transaction: Transaction,
  organizationId: string,
  regionId: string,
): Promise<boolean> => {
  const [row] = await transaction`
    select 1 from regions where id = ${regionId} and (organization_id is null or organization_id = ${organizationId})
    for key share`
  return row !== undefined
}

/** Inserts a quota row, or updates the given columns of the existing row. */
export const writeRegionQuota = async (
  sql: Sql,
  { organizationId, regionId, sandboxClass }: Place,
  given: Record<string, number | string[] | null>,
  now: Date,
): Promise<void> => {
  const set = { ...given, updated_at: now }
  const row = { organization_id: organizationId, region_id: regionId, sandbox_class: sandboxClass, created_at: now }
  await sql`
    insert into region_quotas ${sql({ ...row, ...set })}
    on conflict (organization_id, region_id, sandbox_class) do update set ${sql(set)}`
}

export type Counts = { snapshot_quota: number; volume_quota: number; snapshots: number; volumes: number }

/**
 * Reads an organization's limits for snapshots and volumes, and how many snapshots and volumes it has. `undefined` if the
 * organization does not exist.
 */
export const countNamed = async (sql: Sql, organizationId: string): Promise<Counts | undefined> => {
  const [row] = await sql<Counts[]>`
    select snapshot_quota, volume_quota,
      (select count(*) from snapshots where organization_id = organizations.id) as snapshots,
      (select count(*) from volumes where organization_id = organizations.id and state <> 'deleted') as volumes
    from organizations where id = ${organizationId}`
  return row
}

/**
 * A region that the organization can see. `is_open`: no quota is needed in this region. The sizes are the capacity of its
 * runners.
 */
export type RegionRow = { id: string; is_open: boolean; cpu: number; memory_gib: number; disk_gib: number }

export const listRegionsOf = (sql: Sql, organizationId: string): Promise<RegionRow[]> =>
  sql<RegionRow[]>`
    select regions.id, not enforces_quota as is_open, coalesce(sum(cpu), 0)::float8 as cpu,
      coalesce(sum(memory_gib), 0)::float8 as memory_gib, coalesce(sum(disk_gib), 0)::float8 as disk_gib
    from regions left join runners on region_id = regions.id and runners.state in ('ready', 'unresponsive')
    where organization_id = ${organizationId} or (organization_id is null and (region_type = 'shared' or exists (
      select from region_quotas where region_id = regions.id and region_quotas.organization_id = ${organizationId})))
    group by regions.id order by region_type, regions.name, regions.id limit 1000`
