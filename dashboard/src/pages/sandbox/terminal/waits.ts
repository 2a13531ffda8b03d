const firstMilliseconds = 500
const longestMilliseconds = 15_000

/**
 * Returns how long to wait before the next attempt to connect, in ms. The wait doubles with each failure. `random` (0 to 1)
 * varies it, so that after a restart of the server not all pages connect at the same moment.
 */
export const waitAfter = (failures: number, random: number): number => {
  const wait = Math.min(longestMilliseconds, firstMilliseconds * 2 ** Math.max(0, failures - 1))
  return Math.round(wait * (0.75 + random / 4))
}
