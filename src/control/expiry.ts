// When something ends, as a caller says it.
import { readFutureDate } from './future-date.ts'

/** `undefined`, also for null: nothing was said. */
export const readExpiry = (given: string | null | undefined, now: Date): Date | undefined =>
  given === null || given === undefined ? undefined : readFutureDate('expiresAt', given, now)
