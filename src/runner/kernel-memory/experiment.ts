// Finds the sandbox that makes the kernel's uncharged memory grow, by evidence: all suspects are held still together, then each
// runs alone for a moment. Growth that goes on while all are still is none of theirs; growth while one runs alone is its own.
//
// The suspects are few, and each is still for some hundred milliseconds. That is only done while memory grows that no limit
// counts, which ordinary programs do not cause.
const MiB = 1024 ** 2

export type ExperimentParts = {
  /** Bytes that no limit counts, now. */
  uncharged: () => number
  /** Resolves with true once nothing of the sandbox runs, until `release` is aborted; false if that cannot be had now. */
  holdStill: (sandboxId: string, release: AbortSignal) => Promise<boolean>
  delay: (ms: number) => Promise<unknown>
}

/** Enough growth to tell it from what else goes on on a host. */
const tellingBytes = 8 * MiB
const stepMs = 50
const longestWindowMs = 2000
/** Other growth on the host may coincide with a sandbox that runs alone, but not each time. */
const timesToGrow = 3
/** The windows of all suspects together. */
const longestMs = 4000

/** Waits until memory has grown enough to tell, and answers how long that took; undefined if it does not grow now. */
const awaitGrowth = async ({ uncharged, delay }: ExperimentParts, windowMs: number): Promise<number | undefined> => {
  const before = uncharged()
  for (let ms = stepMs; ms <= windowMs; ms += stepMs) {
    await delay(stepMs)
    if (uncharged() - before >= tellingBytes) return ms
  }
  return undefined
}

/** Waits while all are still, and answers the bytes then; undefined if they grow all the same. */
const settle = async ({ uncharged, delay }: ExperimentParts, ms: number): Promise<number | undefined> => {
  const before = uncharged()
  await delay(ms)
  const after = uncharged()
  return after - before >= tellingBytes / 4 ? undefined : after
}

/** `suspects` come most suspected first. Those that cannot be held still now are left out. */
export const findGrower = async (parts: ExperimentParts, suspects: readonly string[]): Promise<string | undefined> => {
  const growsInMs = await awaitGrowth(parts, longestWindowMs)
  if (growsInMs === undefined) return undefined
  const windowMs = Math.max(4 * stepMs, growsInMs)
  const chosen = suspects.slice(0, Math.max(2, Math.floor(longestMs / windowMs)))
  const holds = new Map<string, AbortController>()
  const hold = async (sandboxId: string) => {
    const release = new AbortController()
    holds.set(sandboxId, release)
    return parts.holdStill(sandboxId, release.signal)
  }
  try {
    const isStill = await Promise.all(chosen.map(hold))
    let settled = await settle(parts, windowMs)
    if (settled === undefined) return undefined
    for (const [index, sandboxId] of chosen.entries()) {
      if (!isStill[index]) continue
      let timesGrown = 0
      for (; timesGrown < timesToGrow; timesGrown++) {
        holds.get(sandboxId)?.abort()
        const hasGrown = (await awaitGrowth(parts, 2 * windowMs)) !== undefined
        // Held again, so that the next one is alone too. One is never held twice: the first hold would be let go of by nobody.
        if (!(await hold(sandboxId))) return undefined
        if (!hasGrown) break
        const before = settled
        settled = await settle(parts, windowMs)
        if (settled === undefined) return undefined
        // What busy programs make and end comes and goes.
        if (settled - before < tellingBytes / 2) break
      }
      if (timesGrown === timesToGrow) return sandboxId
    }
    return undefined
  } finally {
    for (const release of holds.values()) release.abort()
  }
}
