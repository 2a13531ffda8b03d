// The SQL of regions. An organization sees its own regions, and the regions that belong to no organization (for exceptions, see
// the condition `own`).
import { deleteImagesIn } from '../images/image-store.ts'
import { deleteRunnersIn } from '../runners/service.ts'
import type { Sql, Transaction } from '../storage/database.ts'

export type Region = {
  id: string
  name: string
  organizationId: string | null
  regionType: 'shared' | 'dedicated' | 'custom'
  enforcesQuota: boolean
  proxyUrl: string | null
  sshGatewayUrl: string | null
  snapshotManagerUrl: string | null
  otelEndpoint: string | null
  savesStopped: boolean
  createdAt: Date
  updatedAt: Date
}

type Row = {
  id: string
  name: string
  organization_id: string | null
  region_type: Region['regionType']
  enforces_quota: boolean
  proxy_url: string | null
  ssh_gateway_url: string | null
  snapshot_manager_url: string | null
  otel_endpoint: string | null
  saves_stopped: boolean
  created_at: Date
  updated_at: Date
}

const readRegion = (row: Row): Region => ({
  id: row.id,
  name: row.name,
  organizationId: row.organization_id,
  regionType: row.region_type,
  enforcesQuota: row.enforces_quota,
  proxyUrl: row.proxy_url,
  sshGatewayUrl: row.ssh_gateway_url,
  snapshotManagerUrl: row.snapshot_manager_url,
  otelEndpoint: row.otel_endpoint,
  savesStopped: row.saves_stopped,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})

/**
 * SQL condition for regions that an organization may use: its own regions, shared regions, and dedicated regions in which it
 * has a quota.
 */
const own = (sql: Sql, organizationId: string) => sql`
  (organization_id = ${organizationId} or (organization_id is null and (region_type = 'shared' or exists (
    select from region_quotas where region_id = regions.id and region_quotas.organization_id = ${organizationId}))))`

/**
 * Lists the regions of an organization, its own regions first. A shared region that enforces quotas is listed only if the
 * organization has a quota there.
 */
export const listRegions = async (sql: Sql, organizationId: string): Promise<Region[]> => {
  const rows = await sql<Row[]>`
    select * from regions where ${own(sql, organizationId)} and (region_type <> 'shared' or not enforces_quota
      or exists (select from region_quotas
        where region_id = regions.id and region_quotas.organization_id = ${organizationId}))
    order by region_type, name, id limit 1000` // The regions are ordered by type: custom, dedicated, shared.
  return rows.map(readRegion)
}

export const listSharedRegions = async (sql: Sql): Promise<Region[]> => {
  const rows = await sql<Row[]>`select * from regions where region_type = 'shared' order by name, id limit 1000`
  return rows.map(readRegion)
}

export const findRegionById = async (sql: Sql, organizationId: string, id: string): Promise<Region | undefined> => {
  const [row] = await sql<Row[]>`select * from regions where id = ${id} and ${own(sql, organizationId)}`
  return row && readRegion(row)
}

/** Turns saves of stopped sandboxes off or on in a region of the server. Undefined if there is no such region. */
export const writeSavesStopped = async (
  sql: Sql,
  id: string,
  savesStopped: boolean,
  now: Date,
): Promise<Region | undefined> => {
  const [row] = await sql<Row[]>`
    update regions set saves_stopped = ${savesStopped}, updated_at = ${now}
    where id = ${id} and organization_id is null returning *`
  return row && readRegion(row)
}

/** The columns of a region that its organization can write. */
export type RegionColumns = {
  id: string
  name: string
  organization_id: string
  proxy_url: string | null
  ssh_gateway_url: string | null
  snapshot_manager_url: string | null
  otel_endpoint: string | null
  proxy_key_hash: string | null
  ssh_gateway_key_hash: string | null
  snapshot_manager_username: string | null
  snapshot_manager_password: string | null
}

export type OwnRegion = Pick<
  RegionColumns,
  'id' | 'proxy_url' | 'ssh_gateway_url' | 'snapshot_manager_url' | 'otel_endpoint'
>

/**
 * Counts the regions of an organization. Locks the organization, so concurrent creates wait. Undefined if the organization does
 * not exist.
 */
export const countOwnRegions = async (
  transaction: Transaction,
  organizationId: string,
): Promise<number | undefined> => {
  const [held] = await transaction`select 1 from organizations where id = ${organizationId} for no key update`
  if (held === undefined) return undefined
  const [counted] = await transaction<{ count: number }[]>`
    select count(*) from regions where organization_id = ${organizationId}`
  return counted?.count ?? 0
}

export const insertRegion = async (
  transaction: Transaction,
  region: Partial<RegionColumns>,
  now: Date,
): Promise<void> => {
  const columns = { ...region, region_type: 'custom', created_at: now, updated_at: now }
  await transaction`insert into regions ${transaction(columns)}`
}

/**
 * Locks a region of the organization. Until the transaction ends, nobody can change the region or create a sandbox
 * there.
 */
export const lockOwnRegion = async (
  transaction: Transaction,
  organizationId: string,
  id: string,
): Promise<OwnRegion | undefined> => {
  const [row] = await transaction<OwnRegion[]>`
    select id, proxy_url, ssh_gateway_url, snapshot_manager_url, otel_endpoint from regions
    where id = ${id} and organization_id = ${organizationId} for update`
  return row
}

export const writeRegion = async (
  transaction: Transaction,
  id: string,
  columns: Partial<RegionColumns>,
  now: Date,
): Promise<void> => {
  await transaction`update regions set ${transaction({ ...columns, updated_at: now } as typeof columns)} where id = ${id}`
}

export const hasRunners = async (sql: Sql, id: string): Promise<boolean> => {
  const [row] = await sql`select 1 from runners where region_id = ${id} and state <> 'decommissioned' limit 1`
  return row !== undefined
}

/**
 * Deletes a region, its images, and its decommissioned runners. Call this only if no sandboxes and no other runners are
 * left.
 */
export const deleteRegion = async (transaction: Transaction, id: string): Promise<void> => {
  await deleteImagesIn(transaction, transaction`select id from regions where id = ${id}`)
  await deleteRunnersIn(transaction, id)
  await transaction`delete from regions where id = ${id}`
}

/** Deletes all regions of a deleted organization, and their images. */
export const deleteRegionsOf = async (transaction: Transaction, organizationId: string): Promise<void> => {
  await deleteImagesIn(transaction, transaction`select id from regions where organization_id = ${organizationId}`)
  await transaction`delete from regions where organization_id = ${organizationId}`
}

export const ensureSharedRegion = async (sql: Sql, { id, name }: { id: string; name: string }): Promise<void> => {
  await sql`insert into regions (id, name, region_type) values (${id}, ${name}, 'shared') on conflict do nothing`
}

/** Finds the region whose proxy has this key. */
export const findRegionIdByProxyKey = async (sql: Sql, hash: string): Promise<string | undefined> => {
  const [row] = await sql<{ id: string }[]>`select id from regions where proxy_key_hash = ${hash}`
  return row?.id
}

/** Finds the region whose SSH gateway has this key. */
export const findRegionIdBySshKey = async (sql: Sql, hash: string): Promise<string | undefined> => {
  const [row] = await sql<{ id: string }[]>`select id from regions where ssh_gateway_key_hash = ${hash}`
  return row?.id
}

/** Removes the credentials of all services in the regions of an organization that is being deleted. */
export const revokeRegionKeys = async (transaction: Transaction, organizationId: string): Promise<void> => {
  await transaction`
    update regions set proxy_key_hash = null, ssh_gateway_key_hash = null, snapshot_manager_username = null,
      snapshot_manager_password = null
    where organization_id = ${organizationId}`
}
