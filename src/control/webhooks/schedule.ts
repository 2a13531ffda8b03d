// When a failed webhook message is sent again: first after 5 seconds, then at growing intervals, for about a day and a half.
const seconds = 1
const minutes = 60
const hours = 3600

const waits = [
  5 * seconds,
  30 * seconds,
  2 * minutes,
  10 * minutes,
  30 * minutes,
  1 * hours,
  3 * hours,
  6 * hours,
  12 * hours,
  14 * hours,
] as const

/** Seconds until the next attempt, given the number of attempts so far. Undefined: no further attempt is made. */
export const waitAfter = (attempts: number, random: () => number = Math.random): number | undefined => {
  const wait = waits[attempts - 1]
  // Adds up to 10% at random, so that messages that failed at the same time are not all retried at the same time.
  return wait === undefined ? undefined : wait * (1 + random() / 10)
}

/**
 * An endpoint is disabled if the last attempt of a message fails, and everything sent to the endpoint has failed for this many
 * seconds.
 */
export const deadAfterSeconds = 24 * hours

/** Seconds until the next attempt to set up webhooks for an organization. The attempts go on until one succeeds. */
export const retryAfter = (attempts: number): number => Math.min(5 * seconds * 2 ** Math.min(attempts, 12), 1 * hours)
