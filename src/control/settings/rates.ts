import type { Rate } from '#src/kit/rate.ts'

/**
 * The buckets in which calls are counted: unknown callers, wrong credentials, all calls of an organization, and two
 * special kinds of an organization's calls.
 */
export const buckets = ['anonymous', 'failed-auth', 'authenticated', 'sandbox-create', 'sandbox-lifecycle'] as const

export type Bucket = (typeof buckets)[number]

/** The rate limit of each bucket. A bucket without a rate has no limit. */
export type RateLimits = Readonly<Partial<Record<Bucket, Rate>>>
