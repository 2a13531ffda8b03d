import type { Rate } from '#src/kit/rate.ts'

/**
 * The kinds of calls that are counted separately: calls of an IP address without a credential, calls of an IP address
 * with a wrong credential, creates of sandboxes, other changes of sandboxes, and all other calls of an organization.
 */
export const buckets = ['anonymous', 'failed-auth', 'authenticated', 'sandbox-create', 'sandbox-lifecycle'] as const

export type Bucket = (typeof buckets)[number]

/** The rate limit of each kind of calls (see `buckets`). A kind without an entry has no limit. */
export type RateLimits = Readonly<Partial<Record<Bucket, Rate>>>
