// The rate limit bucket of each route. Calls of routes in one bucket are counted together.

import type { Organization } from '#src/control/people/organization.ts'
import type { Rate } from '#src/kit/rate.ts'
import type { ControlRoute } from '../auth/route.ts'
import type { Bucket, RateLimits } from '../settings/rates.ts'

export const bucketsOfRoutes: Readonly<Record<string, Bucket>> = {
  'POST /sandbox': 'sandbox-create',
  'POST /sandbox/:sandboxIdOrName/fork': 'sandbox-create',
  'POST /sandbox/:sandboxIdOrName/start': 'sandbox-lifecycle',
  'POST /sandbox/:sandboxIdOrName/stop': 'sandbox-lifecycle',
  'POST /sandbox/:sandboxIdOrName/pause': 'sandbox-lifecycle',
  'POST /sandbox/:sandboxIdOrName/resize': 'sandbox-lifecycle',
  'POST /sandbox/:sandboxIdOrName/archive': 'sandbox-lifecycle',
  'POST /sandbox/:sandboxIdOrName/recover': 'sandbox-lifecycle',
  'DELETE /sandbox/:sandboxIdOrName': 'sandbox-lifecycle',
}

export const bucketOf = ({ method, path }: Pick<ControlRoute, 'method' | 'path'>): Bucket =>
  bucketsOfRoutes[`${method} ${path}`] ?? 'authenticated'

/** Health checks have no rate limit, because they must be answered even when other calls are refused. */
export const isProbe = ({ path }: Pick<ControlRoute, 'path'>): boolean => path.startsWith('/health')

const ownRates = {
  authenticated: ['authenticatedRateLimit', 'authenticatedRateLimitTtlSeconds'],
  'sandbox-create': ['sandboxCreateRateLimit', 'sandboxCreateRateLimitTtlSeconds'],
  'sandbox-lifecycle': ['sandboxLifecycleRateLimit', 'sandboxLifecycleRateLimitTtlSeconds'],
} as const satisfies Partial<Record<Bucket, readonly [keyof Organization, keyof Organization]>>

const standardTtlSeconds = 60

/**
 * Returns the rate of a bucket for an organization: the organization's own rate, or else the server's rate. Undefined:
 * no limit.
 */
export const rateFor = (bucket: Bucket, standard: RateLimits, organization?: Organization): Rate | undefined => {
  const [limitName, ttlName] = bucket in ownRates ? ownRates[bucket as keyof typeof ownRates] : []
  const limit = (limitName && organization?.[limitName]) ?? standard[bucket]?.limit
  const ttlSeconds = (ttlName && organization?.[ttlName]) ?? standard[bucket]?.ttlSeconds ?? standardTtlSeconds
  return limit === undefined ? undefined : { limit, ttlSeconds }
}
