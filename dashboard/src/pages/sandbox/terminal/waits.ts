const firstMilliseconds = 500
const longestMilliseconds = 15_000

/**
 * How long to wait before the next attempt to connect, in ms. `random` (0 to 1) varies the wait, so that not all pages connect at
 * once after a restart of the server.
 */
export const waitAfter = (failures: number, random: number): number => {
  const wait = Math.min(longestMilliseconds, firstMilliseconds * 2 ** Math.max(0, failures - 1))
  return Math.round(wait * (0.75 + random / 4))
}
