// Reads the expiry times that callers set.
import { readFutureDate } from './future-date.ts'

/** Reads an expiry. `undefined` and `null` mean: no expiry. */
export const readExpiry = (given: string | null | undefined, now: Date): Date | undefined =>
  given === null || given === undefined ? undefined : readFutureDate('expiresAt', given, now)
