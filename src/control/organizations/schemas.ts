// The request and reply schemas of `/organizations`.
import Type from 'typebox'
import { DateTime, optional, orNull, PathText, textMap } from '#src/http/shapes.ts'

const Headers = orNull(textMap({ names: 1024, values: 16_384, most: 100 }))

export const OtelConfig = Type.Object({
  endpoint: Type.String({ maxLength: 2048 }),
  headers: Type.Optional(Headers),
})

export const OtelConfigOfOrganization = Type.Object({
  organizationId: Type.String(),
  endpoint: Type.String(),
  headers: Headers,
})

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
  otelConfig: orNull(OtelConfig),
  createdAt: DateTime,
  updatedAt: DateTime,
})

export const SandboxToken = Type.Object({ authToken: PathText })

export const CreateOrganization = Type.Object({
  name: Type.String({ maxLength: 1000 }),
  defaultRegionId: Type.String({ maxLength: 255 }),
})

export const DefaultRegion = Type.Object({ defaultRegionId: Type.String({ maxLength: 255 }) })

export const mostExperimentalBytes = 64 * 1024

export const ExperimentalConfig = Type.Record(Type.String(), Type.Unknown(), { maxProperties: 1000 })

export const Suspension = Type.Object({
  reason: optional(Type.String({ maxLength: 1000 })),
  until: optional(Type.String({ maxLength: 64 })),
  suspensionCleanupGracePeriodHours: optional(Type.Integer({ minimum: 0, maximum: 87_600 })),
})

export const LimitedEgress = Type.Object({ sandboxDefaultLimitedNetworkEgress: Type.Boolean() })
export const PreviewWarning = Type.Object({ previewWarningEnabled: Type.Boolean() })
export const SsoEnabled = Type.Object({ ssoEnabled: Type.Boolean() })
