// When something shall end: a number of days from now, a date, or never.
export type Expiry = { days: string; date: string }

/** Values of `days` that are no number: an end by date, and none. */
export const onDate = 'date'
export const never = ''

/**
 * The end as the API has it; null: never. `now` is the server's time in ms. Throws a sentence if the date is missing or
 * past. A date means its last second, in the reader's time zone.
 */
export const expiresAt = ({ days, date }: Expiry, now: number): string | null => {
  if (days === never) return null
  if (days !== onDate) return new Date(now + Number(days) * 86_400_000).toISOString()
  const end = new Date(`${date}T23:59:59`)
  if (Number.isNaN(end.getTime())) throw new Error('Choose the date of the end.')
  if (end.getTime() <= now) throw new Error('The date of the end is past.')
  return end.toISOString()
}
