// What one sandbox may have at most, and for how long.

import type { Organization } from '#src/control/people/organization.ts'
import type { Region } from '#src/control/regions/service.ts'
import type { Size } from '#src/control/sandboxes/record/columns.ts'
import type { Sql } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import { listRegionQuotasIn, type RegionQuotaRow } from './store.ts'

/** What holds for the sandboxes of one class that an organization has in one region. */
export type Quota = {
  /** What the region says counts, and where it says nothing the organization. */
  most: Size
  /** GiB of one that is not deleted when it stops; null: as any. */
  mostKeptGiB: number | null
  /** Minutes. */
  longestLife: number | null
  /** Null: nothing was said about this place. */
  row: RegionQuotaRow | null
}

/** Quotas of each class in a region, for a caller that does not know the class yet. */
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

/** A disk above this goes with the sandbox as soon as that stops. */
export const checkKept = (diskGiB: number, autoDeleteInterval: number, { mostKeptGiB }: Quota): void => {
  if (autoDeleteInterval === 0 || mostKeptGiB === null || diskGiB <= mostKeptGiB) return
  throw new Problem(
    'quota_exceeded',
    `disk ${diskGiB} GiB is more than the ${mostKeptGiB} GiB of a sandbox that is not deleted when it stops`,
  )
}

/** Where a region enforces quotas, those who were given none may have nothing. */
export const checkOpen = ({ id, enforcesQuota }: Pick<Region, 'id' | 'enforcesQuota'>, { row }: Quota): void => {
  if (!enforcesQuota || row !== null) return
  throw new Problem('quota_exceeded', `This organization has no quota in the region "${id}".`)
}

/** When one that is made now ends at the latest. */
export const endOfLife = ({ longestLife }: Pick<Quota, 'longestLife'>, now: Date): Date | null =>
  longestLife === null ? null : new Date(now.getTime() + longestLife * 60_000)

/** The minutes that a sandbox is given, 0 for no end: where there is a limit no more than that, and never without. */
export const readTtl = (given: number | undefined, { longestLife }: Pick<Quota, 'longestLife'>): number => {
  if (longestLife === null) return given ?? 0
  if (given === undefined) return longestLife
  if (given > 0 && given <= longestLife) return given
  throw new Problem('bad_request', `ttlMinutes must be from 1 to ${longestLife} in this region, not ${given}`)
}
