// Shows the quotas of an organization, the used part of each quota, and the regions in which the organization can have sandboxes.

import type { Parts } from '#src/control/parts.ts'
import type { Organization } from '#src/control/people/organization.ts'
import type { Overcommit } from '#src/control/runners/placement.ts'
import { Problem } from '#src/problems.ts'
import type { RegionUsage } from './schemas.ts'
import { countNamed, listRegionQuotas, listRegionsOf, type RegionQuotaRow, type RegionRow } from './store.ts'
import { type Held, listHeld, nothing } from './totals.ts'

type UsageParts = Pick<Parts, 'database'> & { options: { overcommit: Overcommit } }

/** The sandbox classes that runners of this version can make. */
const builtClasses = ['container'] as const

type Class = RegionUsage['sandboxClass']

type QuotaPlace = { region: RegionRow; sandboxClass: Class; quota: RegionQuotaRow | undefined; held: Held }

/** Lists the pairs of region and sandbox class where the organization may create sandboxes, has a quota, or has sandboxes. */
const listPlaces = async ({ database }: UsageParts, organizationId: string): Promise<QuotaPlace[]> => {
  const { sql } = database
  const [regions, quotas, held] = await Promise.all([
    listRegionsOf(sql, organizationId),
    listRegionQuotas(sql, organizationId),
    listHeld(sql, organizationId),
  ])
  return regions.flatMap((region) => {
    const quotasHere = quotas.filter(({ region_id }) => region_id === region.id)
    const heldHere = held.filter(({ regionId }) => regionId === region.id)
    const classes = new Set([
      ...(region.is_open ? builtClasses : []),
      ...quotasHere.map(({ sandbox_class }) => sandbox_class as Class),
      ...heldHere.map(({ sandboxClass }) => sandboxClass as Class),
    ])
    return [...classes].map((sandboxClass) => ({
      region,
      sandboxClass,
      quota: quotasHere.find(({ sandbox_class }) => sandbox_class === sandboxClass),
      held: heldHere.find((here) => here.sandboxClass === sandboxClass) ?? nothing,
    }))
  })
}

/**
 * Returns the quota and usage of one region. Without a quota, the total is the capacity of the region's runners,
 * multiplied by the overcommit.
 */
const asRegionUsage = ({ region, sandboxClass, quota, held }: QuotaPlace, overcommit: Overcommit): RegionUsage => ({
  regionId: region.id,
  sandboxClass,
  totalCpuQuota: quota?.total_cpu_quota ?? Math.floor(region.cpu * overcommit.cpu),
  currentCpuUsage: held.cpu,
  totalMemoryQuota: quota?.total_memory_quota ?? Math.floor(region.memory_gib * overcommit.memory),
  currentMemoryUsage: held.memoryGiB,
  totalDiskQuota: quota?.total_disk_quota ?? Math.floor(region.disk_gib * overcommit.disk),
  currentDiskUsage: held.diskGiB,
  totalGpuQuota: quota?.total_gpu_quota ?? 0,
  currentGpuUsage: 0,
  ...(quota?.allowed_gpu_types ? { allowedGpuTypes: quota.allowed_gpu_types } : {}),
  maxCpuPerSandbox: quota?.max_cpu_per_sandbox ?? null,
  maxMemoryPerSandbox: quota?.max_memory_per_sandbox ?? null,
  maxDiskPerSandbox: quota?.max_disk_per_sandbox ?? null,
  maxDiskPerNonEphemeralSandbox: quota?.max_disk_per_non_ephemeral_sandbox ?? null,
  maxCpuPerGpu: quota?.max_cpu_per_gpu ?? null,
  maxMemoryPerGpu: quota?.max_memory_per_gpu ?? null,
  maxDiskPerGpu: quota?.max_disk_per_gpu ?? null,
})

export const viewUsage = async (parts: UsageParts, { id }: Pick<Organization, 'id'>) => {
  const [places, counts] = await Promise.all([listPlaces(parts, id), countNamed(parts.database.sql, id)])
  if (counts === undefined) throw new Problem('not_found', 'There is no such organization.')
  return {
    regionUsage: places.map((place) => asRegionUsage(place, parts.options.overcommit)),
    totalSnapshotQuota: counts.snapshot_quota,
    currentSnapshotUsage: counts.snapshots,
    totalVolumeQuota: counts.volume_quota,
    currentVolumeUsage: counts.volumes,
  }
}

export const viewAvailableClasses = async (parts: UsageParts, { id }: Pick<Organization, 'id'>) =>
  (await listPlaces(parts, id))
    .filter(({ sandboxClass }) => (builtClasses as readonly string[]).includes(sandboxClass))
    .filter(({ region, quota }) => region.is_open || quota !== undefined)
    .map(({ region, sandboxClass, quota }) => ({
      regionId: region.id,
      sandboxClass,
      gpuAvailable: false,
      ...(quota?.allowed_gpu_types ? { allowedGpuTypes: quota.allowed_gpu_types } : {}),
    }))
