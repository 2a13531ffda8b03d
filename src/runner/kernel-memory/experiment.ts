// Finds the sandbox that makes uncharged memory grow. First all sandboxes that may be the cause ("suspects") are frozen. If memory
// grows meanwhile, no suspect is the cause. Then each suspect runs for a moment while the others are frozen. A suspect is the cause
// if memory grows each time that it runs.
//
// There are few suspects, and each is frozen for some hundred milliseconds. The search runs only while uncharged memory grows,
// which ordinary programs do not cause.
const MiB = 1024 ** 2

export type ExperimentParts = {
  /** Returns how many bytes of kernel memory count towards no memory limit at this moment. */
  uncharged: () => number
  /**
   * Freezes a sandbox until `release` aborts. Resolves with true when the sandbox is frozen, or with false if it cannot be
   * frozen now.
   */
  holdStill: (sandboxId: string, release: AbortSignal) => Promise<boolean>
  delay: (ms: number) => Promise<unknown>
}

/** Smallest growth in bytes that can be distinguished from other changes of the host's memory. */
const tellingBytes = 8 * MiB
const stepMs = 50
const longestWindowMs = 2000
/** Memory must grow this many times while only one suspect runs. A single growth could be chance. */
const timesToGrow = 3
/**
 * Time in milliseconds that all suspects of one call of `findGrower` share. If each suspect needs long, fewer suspects are
 * examined.
 */
const longestMs = 4000

/**
 * Waits until memory has grown by `tellingBytes`. Returns how many milliseconds this growth took. Undefined if memory does not grow
 * that much within `windowMs`.
 */
const awaitGrowth = async ({ uncharged, delay }: ExperimentParts, windowMs: number): Promise<number | undefined> => {
  const before = uncharged()
  for (let ms = stepMs; ms <= windowMs; ms += stepMs) {
    await delay(stepMs)
    if (uncharged() - before >= tellingBytes) return ms
  }
  return undefined
}

/** Waits while all suspects are frozen. Returns the uncharged memory in bytes, or undefined if this memory has grown meanwhile. */
const settle = async ({ uncharged, delay }: ExperimentParts, ms: number): Promise<number | undefined> => {
  const before = uncharged()
  await delay(ms)
  const after = uncharged()
  return after - before >= tellingBytes / 4 ? undefined : after
}

/**
 * Returns the sandbox that makes uncharged memory grow, if there is one. `suspects`: sandboxes that may be the cause, the likeliest
 * first. A suspect that cannot be frozen is left out.
 */
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
        // Freeze this sandbox again, before the next sandbox runs.
        if (!(await hold(sandboxId))) return undefined
        if (!hasGrown) break
        const before = settled
        settled = await settle(parts, windowMs)
        if (settled === undefined) return undefined
        // If the frozen sandbox does not keep this memory, it is innocent: its programs allocate and free memory all the time.
        if (settled - before < tellingBytes / 2) break
      }
      if (timesGrown === timesToGrow) return sandboxId
    }
    return undefined
  } finally {
    for (const release of holds.values()) release.abort()
  }
}
