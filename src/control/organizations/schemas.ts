// The shapes of `/organizations` (contract/control-plane.md §6).
import Type from 'typebox'

const DateTime = Type.String({ format: 'date-time' })
const orNull = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()])

export const Organization = Type.Object({
  id: Type.String(),
  name: Type.String(),
  createdBy: Type.String(),
  personal: Type.Boolean(),
  defaultRegionId: Type.Optional(Type.String()),
  suspended: Type.Boolean(),
  suspendedAt: orNull(DateTime),
  suspendedUntil: orNull(DateTime),
  suspensionReason: orNull(Type.String()),
  suspensionCleanupGracePeriodHours: Type.Number(),
  maxCpuPerSandbox: Type.Number(),
  maxMemoryPerSandbox: Type.Number(),
  maxDiskPerSandbox: Type.Number(),
  secretQuota: Type.Number(),
  maxSecretsPerSandbox: Type.Number(),
  snapshotDeactivationTimeoutMinutes: Type.Number(),
  sandboxLimitedNetworkEgress: Type.Boolean(),
  previewWarningEnabled: Type.Boolean(),
  ssoEnabled: Type.Boolean(),
  authenticatedRateLimit: orNull(Type.Number()),
  authenticatedRateLimitTtlSeconds: orNull(Type.Number()),
  sandboxCreateRateLimit: orNull(Type.Number()),
  sandboxCreateRateLimitTtlSeconds: orNull(Type.Number()),
  sandboxLifecycleRateLimit: orNull(Type.Number()),
  sandboxLifecycleRateLimitTtlSeconds: orNull(Type.Number()),
  experimentalConfig: orNull(Type.Record(Type.String(), Type.Unknown())),
  otelConfig: orNull(
    Type.Object({ endpoint: Type.String(), headers: orNull(Type.Record(Type.String(), Type.String())) }),
  ),
  createdAt: DateTime,
  updatedAt: DateTime,
})

export const OrganizationId = Type.Object({ organizationId: Type.String() })
