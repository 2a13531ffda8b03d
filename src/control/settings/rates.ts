import type { Rate } from '#src/kit/rate.ts'

/**
 * The kinds of calls that are counted separately. `sandbox-lifecycle`: changes of sandboxes other than creates.
 * `authenticated`: all other calls of an organization.
 */
export const buckets = ['anonymous', 'failed-auth', 'authenticated', 'sandbox-create', 'sandbox-lifecycle'] as const

export type Bucket = (typeof buckets)[number]

/** The rate limit of each kind of calls (see `buckets`). A kind without an entry has no limit. */
export type RateLimits = Readonly<Partial<Record<Bucket, Rate>>>
