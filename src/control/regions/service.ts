// The regions in which sandboxes can run. To an organization, the regions of other organizations seem not to exist.
import { Problem } from '#src/problems.ts'
import type { Parts } from '../parts.ts'
import type { Sql } from '../storage/database.ts'
import { findRegionById, listRegions, listSharedRegions, type Region, writeSavesStopped } from './store.ts'

export type { Region } from './store.ts'
export {
  deleteRegionsOf,
  ensureSharedRegion,
  findRegionIdByProxyKey,
  findRegionIdBySshKey,
  revokeRegionKeys,
} from './store.ts'

type RegionsParts = Pick<Parts, 'database'>

const asView = ({ enforcesQuota: _, createdAt, updatedAt, ...region }: Region) => ({
  ...region,
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
})

/** Finds a region that the organization may use. Undefined if there is no such region. */
export const findRegion = (sql: Sql, organizationId: string, id: string): Promise<Region | undefined> =>
  findRegionById(sql, organizationId, id)

/** Finds a region that everybody may use. */
export const findSharedRegion = async (parts: RegionsParts, id: string): Promise<Region | undefined> =>
  // No organization has the id '', so this call returns only regions that everybody may use.
  await findRegion(parts.database.sql, '', id)

export const viewRegion = async (parts: RegionsParts, organizationId: string, id: string) => {
  const region = await findRegion(parts.database.sql, organizationId, id)
  if (region === undefined) throw new Problem('not_found', 'There is no such region.')
  return asView(region)
}

export const viewRegions = async ({ database }: RegionsParts, organizationId: string) =>
  (await listRegions(database.sql, organizationId)).map(asView)

export const viewSharedRegions = async ({ database }: RegionsParts) =>
  (await listSharedRegions(database.sql)).map(asView)

/** Changes a region that belongs to the server. Throws 404 for a region of an organization. */
export const changeSharedRegion = async (
  { database, clock }: Pick<Parts, 'database' | 'clock'>,
  id: string,
  { savesStopped }: { savesStopped: boolean },
) => {
  const region = await writeSavesStopped(database.sql, id, savesStopped, clock.now())
  if (region === undefined) throw new Problem('not_found', 'There is no such region of the server.')
  return asView(region)
}
