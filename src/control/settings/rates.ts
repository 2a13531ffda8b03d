import type { Rate } from '#src/kit/rate.ts'

/** What is counted together: calls of strangers, of keys that are wrong, of an organization, and two kinds of its own. */
export const buckets = ['anonymous', 'failed-auth', 'authenticated', 'sandbox-create', 'sandbox-lifecycle'] as const

export type Bucket = (typeof buckets)[number]

/** A bucket that is absent is not limited. */
export type RateLimits = Readonly<Partial<Record<Bucket, Rate>>>
