// The SQL of regions. An organization sees its own, and those that belong to nobody in particular.
import type { Sql } from '../storage/database.ts'

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
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})

/** Of those that belong to nobody: the shared ones, and others where the organization was given a quota. */
const own = (sql: Sql, organizationId: string) => sql`
  (organization_id = ${organizationId} or (organization_id is null and (region_type = 'shared' or exists (
    select from region_quotas where region_id = regions.id and region_quotas.organization_id = ${organizationId}))))`

/** Own ones first. */
export const listRegions = async (sql: Sql, organizationId: string): Promise<Region[]> => {
  const rows = await sql<Row[]>`
    select * from regions where ${own(sql, organizationId)}
    order by region_type, name, id limit 1000` // custom, dedicated, shared: the order of the alphabet is the one wanted
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
