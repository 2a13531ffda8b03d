import type { Rate } from '#src/kit/rate.ts'

/**
 * The buckets of calls: of strangers, of wrong credentials, of an organization, and two special kinds of the organization's
 * calls.
 */
export const buckets = ['anonymous', 'failed-auth', 'authenticated', 'sandbox-create', 'sandbox-lifecycle'] as const

export type Bucket = (typeof buckets)[number]

/** A bucket that is absent has no limit. */
export type RateLimits = Readonly<Partial<Record<Bucket, Rate>>>
