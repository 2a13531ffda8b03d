// An organization as control stores it, and as the API shows it.
import type { Clock } from '#src/kit/clock.ts'
import { Problem } from '#src/problems.ts'

/** The server to which the telemetry of the organization's sandboxes is sent, and the headers for that server. */
export type OtelConfig = { endpoint: string; headers: Record<string, string> | null }

export type OrganizationRow = {
  id: string
  name: string
  created_by: string
  personal: boolean
  default_region_id: string | null
  suspended: boolean
  suspended_at: Date | null
  suspended_until: Date | null
  suspension_reason: string | null
  suspension_cleanup_grace_period_hours: number
  max_cpu_per_sandbox: number
  max_memory_per_sandbox: number
  max_disk_per_sandbox: number
  secret_quota: number
  max_secrets_per_sandbox: number
  snapshot_deactivation_timeout_minutes: number
  sandbox_limited_network_egress: boolean
  preview_warning_enabled: boolean
  sso_enabled: boolean
  authenticated_rate_limit: number | null
  authenticated_rate_limit_ttl_seconds: number | null
  sandbox_create_rate_limit: number | null
  sandbox_create_rate_limit_ttl_seconds: number | null
  sandbox_lifecycle_rate_limit: number | null
  sandbox_lifecycle_rate_limit_ttl_seconds: number | null
  experimental_config: Record<string, unknown> | null
  otel_config: string | null
  created_at: Date
  updated_at: Date
}

export type Organization = {
  id: string
  name: string
  createdBy: string
  personal: boolean
  defaultRegionId: string | null
  /**
   * Whether a suspension is stored. The suspension may have ended already: `isSuspended` tells whether the organization
   * is suspended now.
   */
  suspended: boolean
  suspendedAt: Date | null
  suspendedUntil: Date | null
  suspensionReason: string | null
  suspensionCleanupGracePeriodHours: number
  maxCpuPerSandbox: number
  /** Largest memory of one sandbox, in GiB. `maxDiskPerSandbox` is in GiB too. */
  maxMemoryPerSandbox: number
  maxDiskPerSandbox: number
  secretQuota: number
  maxSecretsPerSandbox: number
  snapshotDeactivationTimeoutMinutes: number
  sandboxLimitedNetworkEgress: boolean
  previewWarningEnabled: boolean
  ssoEnabled: boolean
  authenticatedRateLimit: number | null
  authenticatedRateLimitTtlSeconds: number | null
  sandboxCreateRateLimit: number | null
  sandboxCreateRateLimitTtlSeconds: number | null
  sandboxLifecycleRateLimit: number | null
  sandboxLifecycleRateLimitTtlSeconds: number | null
  experimentalConfig: Record<string, unknown> | null
  /** The encrypted telemetry setting, which `organizations/otel-config.ts` reads. */
  otelConfig: string | null
  createdAt: Date
  updatedAt: Date
}

export const readOrganization = (row: OrganizationRow): Organization => ({
  id: row.id,
  name: row.name,
  createdBy: row.created_by,
  personal: row.personal,
  defaultRegionId: row.default_region_id,
  suspended: row.suspended,
  suspendedAt: row.suspended_at,
  suspendedUntil: row.suspended_until,
  suspensionReason: row.suspension_reason,
  suspensionCleanupGracePeriodHours: row.suspension_cleanup_grace_period_hours,
  maxCpuPerSandbox: row.max_cpu_per_sandbox,
  maxMemoryPerSandbox: row.max_memory_per_sandbox,
  maxDiskPerSandbox: row.max_disk_per_sandbox,
  secretQuota: row.secret_quota,
  maxSecretsPerSandbox: row.max_secrets_per_sandbox,
  snapshotDeactivationTimeoutMinutes: row.snapshot_deactivation_timeout_minutes,
  sandboxLimitedNetworkEgress: row.sandbox_limited_network_egress,
  previewWarningEnabled: row.preview_warning_enabled,
  ssoEnabled: row.sso_enabled,
  authenticatedRateLimit: row.authenticated_rate_limit,
  authenticatedRateLimitTtlSeconds: row.authenticated_rate_limit_ttl_seconds,
  sandboxCreateRateLimit: row.sandbox_create_rate_limit,
  sandboxCreateRateLimitTtlSeconds: row.sandbox_create_rate_limit_ttl_seconds,
  sandboxLifecycleRateLimit: row.sandbox_lifecycle_rate_limit,
  sandboxLifecycleRateLimitTtlSeconds: row.sandbox_lifecycle_rate_limit_ttl_seconds,
  experimentalConfig: row.experimental_config,
  otelConfig: row.otel_config,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
})

/** Whether the organization is suspended now. A suspension with an end date ends by itself on that date. */
export const isSuspended = (
  { suspended, suspendedUntil }: Pick<Organization, 'suspended' | 'suspendedUntil'>,
  now: Date,
): boolean => suspended && (suspendedUntil === null || suspendedUntil > now)

/**
 * Throws 403 if the organization is suspended. A suspended organization can read, stop and delete sandboxes, but start
 * nothing.
 */
export const checkNotSuspended = (
  { clock }: { clock: Clock },
  { organization }: { organization: Organization },
): void => {
  if (isSuspended(organization, clock.now())) throw new Problem('forbidden', 'This organization is suspended.')
}

/**
 * Returns the organization as the API shows it. `otelConfig` must not contain the values of headers, which are secret.
 */
export const asOrganizationView = (organization: Organization, now: Date, otelConfig: OtelConfig | null) => {
  const { defaultRegionId, suspendedAt, suspendedUntil, createdAt, updatedAt, ...plain } = organization
  const suspended = isSuspended(organization, now)
  return {
    ...plain,
    ...(defaultRegionId === null ? {} : { defaultRegionId }),
    suspended,
    suspendedAt: suspended ? (suspendedAt?.toISOString() ?? null) : null,
    suspendedUntil: suspended ? (suspendedUntil?.toISOString() ?? null) : null,
    suspensionReason: suspended ? organization.suspensionReason : null,
    otelConfig,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  }
}
