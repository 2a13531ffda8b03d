// Reads dates that callers send, for example the expiry of a key. Such a date must be in the future.
import { Problem } from '#src/problems.ts'

const last = Date.UTC(9999, 11, 31)

export const readFutureDate = (field: string, given: string, now: Date): Date => {
  const date = new Date(given)
  // Refuses dates after the year 9999 too: JavaScript writes their year with a sign, which PostgreSQL cannot read.
  if (Number.isNaN(date.getTime()) || date.getTime() > last) throw new Problem('bad_request', `${field} is not a date`)
  if (date <= now) throw new Problem('bad_request', `${field} must be in the future`)
  return date
}
