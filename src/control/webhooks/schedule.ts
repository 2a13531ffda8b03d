// When a message that did not arrive is sent again: soon at first, then ever more rarely, for a day and a half in all.
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

/** What becomes of a message after this many attempts: the wait before the next one, or nothing more. */
export const waitAfter = (attempts: number, random: () => number = Math.random): number | undefined => {
  const wait = waits[attempts - 1]
  // Up to a tenth longer, so that what failed together does not come back together.
  return wait === undefined ? undefined : wait * (1 + random() / 10)
}

/** Without one success for this long, an endpoint whose message is given up counts as dead. */
export const deadAfterSeconds = 24 * hours

/** For what has no end, such as an initialization: from seconds to an hour. */
export const retryAfter = (attempts: number): number => Math.min(5 * seconds * 2 ** Math.min(attempts, 12), 1 * hours)
