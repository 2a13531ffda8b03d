// The limits of a single sandbox: its size and its lifetime.

import type { Organization } from '#src/control/people/organization.ts'
import type { Region } from '#src/control/regions/service.ts'
import type { Size } from '#src/control/sandboxes/record/columns.ts'
import type { Sql } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import { listRegionQuotasIn, type RegionQuotaRow } from './store.ts'

/** The limits of an organization for sandboxes of one class (such as `container`) in one region. */
export type Quota = {
  /**
   * Largest size of one sandbox. Each value comes from the organization's row for this region and class, otherwise from
   * its limits for all regions.
   */
  most: Size
  /** Largest disk, in GiB, of a sandbox that is not deleted when it stops. null: only `most` limits the disk. */
  mostKeptGiB: number | null
  /** Longest lifetime of a sandbox in minutes; null: no limit. */
  longestLife: number | null
  /** The row of `region_quotas` for the organization, the region and the class of sandboxes. null: there is no such row. */
  row: RegionQuotaRow | null
}

/**
 * Reads an organization's quotas in a region. Returns a function of the class of sandboxes (such as `container`), because the
 * caller learns the class only later.
 */
export const getQuotas = async (
  sql: Sql,
  organization: Organization,
  regionId: string,
): Promise<(sandboxClass: string) => Quota> => {
  const rows = await listRegionQuotasIn(sql, organization.id, regionId)
  return (sandboxClass) => quotaBy(organization, rows.find((row) => row.sandbox_class === sandboxClass) ?? null)
}

export const getQuota = async (
  sql: Sql,
  organization: Organization,
  regionId: string,
  sandboxClass: string,
): Promise<Quota> => (await getQuotas(sql, organization, regionId))(sandboxClass)

const quotaBy = (organization: Organization, row: RegionQuotaRow | null): Quota => ({
  most: {
    cpu: row?.max_cpu_per_sandbox ?? organization.maxCpuPerSandbox,
    memoryGiB: row?.max_memory_per_sandbox ?? organization.maxMemoryPerSandbox,
    diskGiB: row?.max_disk_per_sandbox ?? organization.maxDiskPerSandbox,
  },
  mostKeptGiB: row?.max_disk_per_non_ephemeral_sandbox ?? null,
  longestLife: row?.max_sandbox_lifespan ?? null,
  row,
})

export const checkLimits = ({ cpu, memoryGiB, diskGiB }: Size, { most }: Pick<Quota, 'most'>): void => {
  const over = [
    ['cpu', cpu, most.cpu, ''],
    ['memory', memoryGiB, most.memoryGiB, ' GiB'],
    ['disk', diskGiB, most.diskGiB, ' GiB'],
  ] as const
  const said = over
    .filter(([, wanted, limit]) => wanted > limit)
    .map(
      ([name, wanted, limit, unit]) =>
        `${name} ${wanted}${unit} is more than the ${limit}${unit} that a sandbox may have`,
    )
  if (said.length > 0) throw new Problem('quota_exceeded', said.join(', '))
}

/**
 * Throws if the disk is larger than `mostKeptGiB`. That limit does not apply to a sandbox that is deleted when it
 * stops.
 */
export const checkKept = (diskGiB: number, autoDeleteInterval: number, { mostKeptGiB }: Quota): void => {
  if (autoDeleteInterval === 0 || mostKeptGiB === null || diskGiB <= mostKeptGiB) return
  throw new Problem(
    'quota_exceeded',
    `disk ${diskGiB} GiB is more than the ${mostKeptGiB} GiB that a sandbox may have if it is not deleted when it stops`,
  )
}

/** Throws if the region enforces quotas and the organization has no row for this region in `region_quotas`. */
export const checkOpen = ({ id, enforcesQuota }: Pick<Region, 'id' | 'enforcesQuota'>, { row }: Quota): void => {
  if (!enforcesQuota || row !== null) return
  throw new Problem('quota_exceeded', `This organization has no quota in the region "${id}".`)
}

/** Returns when a sandbox that is created now must end at the latest; null: no limit. */
export const endOfLife = ({ longestLife }: Pick<Quota, 'longestLife'>, now: Date): Date | null =>
  longestLife === null ? null : new Date(now.getTime() + longestLife * 60_000)

/** Returns the lifetime of a sandbox in minutes; 0: no end. The quota's longest lifetime is the default and the maximum. */
export const readTtl = (given: number | undefined, { longestLife }: Pick<Quota, 'longestLife'>): number => {
  if (longestLife === null) return given ?? 0
  if (given === undefined) return longestLife
  if (given > 0 && given <= longestLife) return given
  throw new Problem('bad_request', `ttlMinutes must be from 1 to ${longestLife} in this region, not ${given}`)
}
