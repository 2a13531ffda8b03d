// The request and reply schemas of quotas and usage.
import Type, { type Static } from 'typebox'
import { sandboxClasses } from '#src/control/sandboxes/record/columns.ts'
import { optional, orNull, PathText } from '#src/http/shapes.ts'

export const gpuTypes = ['H100', 'H200', 'RTX-PRO-6000', 'RTX-4090', 'RTX-5090', 'MI355X'] as const

/** Largest number that a quota accepts: more than any machine has, and less than the database can store. */
const largest = 1_000_000_000
/** Longest window of a rate limit: a day. A longer window would shut out an organization over its limit for too long. */
const longestWindowSeconds = 86_400

const amount = optional(Type.Integer({ minimum: 0, maximum: largest }))
const seconds = optional(Type.Integer({ minimum: 0, maximum: longestWindowSeconds }))

export const UpdateOrganizationQuota = Type.Object({
  maxCpuPerSandbox: amount,
  maxMemoryPerSandbox: amount,
  maxDiskPerSandbox: amount,
  snapshotQuota: amount,
  maxSnapshotSize: amount,
  volumeQuota: amount,
  secretQuota: amount,
  maxSecretsPerSandbox: amount,
  authenticatedRateLimit: amount,
  sandboxCreateRateLimit: amount,
  sandboxLifecycleRateLimit: amount,
  authenticatedRateLimitTtlSeconds: seconds,
  sandboxCreateRateLimitTtlSeconds: seconds,
  sandboxLifecycleRateLimitTtlSeconds: seconds,
  snapshotDeactivationTimeoutMinutes: amount,
  maxConcurrentSnapshotProcessing: optional(Type.Integer({ minimum: -1, maximum: largest })),
})

export type UpdateOrganizationQuota = Static<typeof UpdateOrganizationQuota>

export const UpdateOrganizationRegionQuota = Type.Object({
  sandboxClass: Type.Optional(Type.Enum([...sandboxClasses])),
  totalCpuQuota: amount,
  totalMemoryQuota: amount,
  totalDiskQuota: amount,
  totalGpuQuota: amount,
  maxCpuPerSandbox: amount,
  maxMemoryPerSandbox: amount,
  maxDiskPerSandbox: amount,
  maxDiskPerNonEphemeralSandbox: amount,
  maxCpuPerGpu: amount,
  maxMemoryPerGpu: amount,
  maxDiskPerGpu: amount,
  maxSandboxLifespan: amount,
  allowedGpuTypes: optional(Type.Array(Type.Enum([...gpuTypes]), { maxItems: 100 })),
})

export type UpdateOrganizationRegionQuota = Static<typeof UpdateOrganizationRegionQuota>

export const QuotaRegion = Type.Object({ organizationId: PathText, regionId: PathText })

const numberOrNull = orNull(Type.Number())

const RegionUsage = Type.Object({
  regionId: Type.String(),
  sandboxClass: Type.Enum([...sandboxClasses]),
  totalCpuQuota: Type.Number(),
  currentCpuUsage: Type.Number(),
  totalMemoryQuota: Type.Number(),
  currentMemoryUsage: Type.Number(),
  totalDiskQuota: Type.Number(),
  currentDiskUsage: Type.Number(),
  totalGpuQuota: Type.Number(),
  currentGpuUsage: Type.Number(),
  allowedGpuTypes: Type.Optional(Type.Array(Type.String())),
  maxCpuPerSandbox: numberOrNull,
  maxMemoryPerSandbox: numberOrNull,
  maxDiskPerSandbox: numberOrNull,
  maxDiskPerNonEphemeralSandbox: numberOrNull,
  maxCpuPerGpu: numberOrNull,
  maxMemoryPerGpu: numberOrNull,
  maxDiskPerGpu: numberOrNull,
})

export type RegionUsage = Static<typeof RegionUsage>

export const OrganizationUsageOverview = Type.Object({
  regionUsage: Type.Array(RegionUsage),
  totalSnapshotQuota: Type.Number(),
  currentSnapshotUsage: Type.Number(),
  totalVolumeQuota: Type.Number(),
  currentVolumeUsage: Type.Number(),
})

export const AvailableSandboxClass = Type.Object({
  regionId: Type.String(),
  sandboxClass: Type.Enum([...sandboxClasses]),
  gpuAvailable: Type.Boolean(),
  allowedGpuTypes: Type.Optional(Type.Array(Type.String())),
})
