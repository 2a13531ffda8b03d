import type { Rate } from '#src/kit/rate.ts'

/**
 * The buckets for rate limits. Calls are counted by unknown address, by wrong credential, and by organization. Creates
 * and other changes of sandboxes have buckets of their own.
 */
export const buckets = ['anonymous', 'failed-auth', 'authenticated', 'sandbox-create', 'sandbox-lifecycle'] as const

export type Bucket = (typeof buckets)[number]

/** The rate limit of each kind of calls in `buckets`. A kind that is absent has no limit. */
export type RateLimits = Readonly<Partial<Record<Bucket, Rate>>>
