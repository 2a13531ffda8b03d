// Reads dates in the future, at which callers want something to end.
import { Problem } from '#src/problems.ts'

const last = Date.UTC(9999, 11, 31)

export const readFutureDate = (field: string, given: string, now: Date): Date => {
  const date = new Date(given)
  // PostgreSQL cannot read years of more than four digits as JavaScript writes them, with a sign.
  if (Number.isNaN(date.getTime()) || date.getTime() > last) throw new Problem('bad_request', `${field} is not a date`)
  if (date <= now) throw new Problem('bad_request', `${field} must be in the future`)
  return date
}
