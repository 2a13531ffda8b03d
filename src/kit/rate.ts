// Reads rate limits from settings: a number of calls, a slash, and a number of seconds.

export type Rate = { limit: number; ttlSeconds: number }

export const rateMeaning = 'calls/seconds, such as 1000/60; at most 1000000000 calls, and 86400 seconds'

/** Reads a rate such as `1000/60`. Returns `undefined` if the text is not a rate. */
export const readRate = (text: string): Rate | undefined => {
  const [, limit, seconds] = /^(\d{1,10})\/(\d{1,5})$/.exec(text) ?? []
  const rate = { limit: Number(limit), ttlSeconds: Number(seconds) }
  const isSound = rate.limit >= 1 && rate.limit <= 1_000_000_000 && rate.ttlSeconds >= 1 && rate.ttlSeconds <= 86_400
  return isSound ? rate : undefined
}
