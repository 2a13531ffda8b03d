// Reads the expiry times that callers set.
import { readFutureDate } from './future-date.ts'

/** Reads an expiry time. If `given` is undefined or null, there is no expiry, and the result is undefined. */
export const readExpiry = (given: string | null | undefined, now: Date): Date | undefined =>
  given === null || given === undefined ? undefined : readFutureDate('expiresAt', given, now)
