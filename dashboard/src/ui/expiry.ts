// The user's choice of when something expires: after a number of days, at a date, or never.
export type Expiry = { days: string; date: string }

/** The two values of the field `days` that are not a number: "at a date" and "never". */
export const onDate = 'date'
export const never = ''

/**
 * Returns the expiry for the API, or null for never. `now` is the server's time in ms. A date stands for its last second in the
 * user's time zone. Throws an error for the user if the date is missing or past.
 */
export const expiresAt = ({ days, date }: Expiry, now: number): string | null => {
  if (days === never) return null
  if (days !== onDate) return new Date(now + Number(days) * 86_400_000).toISOString()
  const end = new Date(`${date}T23:59:59`)
  if (Number.isNaN(end.getTime())) throw new Error('Choose an expiry date.')
  if (end.getTime() <= now) throw new Error('The expiry date is in the past.')
  return end.toISOString()
}
