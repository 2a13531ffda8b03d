import type { Rate } from '#src/kit/rate.ts'

/**
 * The kinds of calls that have rate limits of their own: calls of an address without a credential, calls of an address
 * with a wrong credential, and calls of an organization. Creates and other changes of sandboxes are limited separately.
 */
export const buckets = ['anonymous', 'failed-auth', 'authenticated', 'sandbox-create', 'sandbox-lifecycle'] as const

export type Bucket = (typeof buckets)[number]

/** The rate limit of each kind of calls in `buckets`. A kind that is absent has no limit. */
export type RateLimits = Readonly<Partial<Record<Bucket, Rate>>>
