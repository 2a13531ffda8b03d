// Expiry times that callers set.
import { readFutureDate } from './future-date.ts'

/** Reads an expiry. `undefined`: the caller set no end; `null` counts as not set. */
export const readExpiry = (given: string | null | undefined, now: Date): Date | undefined =>
  given === null || given === undefined ? undefined : readFutureDate('expiresAt', given, now)
