// Settings of an organization that its owners or the operator change.

import { isSuspended, type OrganizationRow } from '#src/control/people/organization.ts'
import { Problem } from '#src/problems.ts'
import { readFutureDate } from '../future-date.ts'
import { findRegion } from '../regions/service.ts'
import { changeOrganization, type OrganizationParts } from './change.ts'

/**
 * Sets the default region. Sandboxes and quotas depend on it, so it can be changed later only if the operator allows
 * that.
 */
export const setDefaultRegion = async (
  parts: OrganizationParts,
  organizationId: string,
  { defaultRegionId }: { defaultRegionId: string },
): Promise<void> => {
  const region = await findRegion(parts.database.sql, organizationId, defaultRegionId)
  if (region === undefined) throw new Problem('not_found', 'There is no such region.')
  await changeOrganization(parts, organizationId, (organization) => {
    if (organization.defaultRegionId === region.id) return undefined
    if (organization.defaultRegionId !== null && !parts.settings.defaultRegionMayChange)
      throw new Problem('conflict', 'This organization has a default region already.')
    return { default_region_id: region.id }
  })
}

type Switch = 'sandbox_limited_network_egress' | 'preview_warning_enabled' | 'sso_enabled'

export const setSwitch = (
  parts: OrganizationParts,
  organizationId: string,
  name: Switch,
  value: boolean,
): Promise<void> => changeOrganization(parts, organizationId, () => ({ [name]: value }))

/** A name that experimental settings must not use: the telemetry settings are encrypted and have their own endpoint. */
const reserved = 'otel'

export const setExperimentalConfig = async (
  parts: OrganizationParts,
  organizationId: string,
  config: Record<string, unknown> | undefined,
): Promise<void> => {
  if (config !== undefined && Object.hasOwn(config, reserved))
    throw new Problem('bad_request', `"${reserved}" cannot be set here; use /otel-config`)
  const columns = { experimental_config: config ?? null } satisfies Partial<OrganizationRow>
  await changeOrganization(parts, organizationId, () => columns)
}

const standardGraceHours = 24

export type Suspension = {
  reason?: string | null
  until?: string | null
  suspensionCleanupGracePeriodHours?: number | null
}

/**
 * Suspends an organization: nothing can be created or started, and running sandboxes are stopped after the grace period. A
 * second suspension keeps the date of the first suspension.
 */
export const suspend = async (
  parts: OrganizationParts,
  organizationId: string,
  { reason, until, suspensionCleanupGracePeriodHours }: Suspension = {},
): Promise<void> => {
  const now = parts.clock.now()
  const suspendedUntil = until ? readFutureDate('until', until, now) : null
  await changeOrganization(parts, organizationId, (organization) => ({
    suspended: true,
    suspended_at: isSuspended(organization, now) ? (organization.suspendedAt ?? now) : now,
    suspended_until: suspendedUntil,
    suspension_reason: reason || null,
    suspension_cleanup_grace_period_hours: suspensionCleanupGracePeriodHours ?? standardGraceHours,
  }))
}

export const unsuspend = (parts: OrganizationParts, organizationId: string): Promise<void> =>
  changeOrganization(parts, organizationId, () => ({
    suspended: false,
    suspended_at: null,
    suspended_until: null,
    suspension_reason: null,
    suspension_cleanup_grace_period_hours: standardGraceHours,
  }))
