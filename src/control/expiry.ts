// When something ends, as a caller says it.
import { Problem } from '#src/problems.ts'

/** `undefined`, also for null: nothing was said. */
export const readExpiry = (given: string | null | undefined, now: Date): Date | undefined => {
  if (given === null || given === undefined) return undefined
  const expiresAt = new Date(given)
  if (Number.isNaN(expiresAt.getTime())) throw new Problem('bad_request', 'expiresAt is not a date')
  if (expiresAt <= now) throw new Problem('bad_request', 'expiresAt must be in the future')
  return expiresAt
}
