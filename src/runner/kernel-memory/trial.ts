// Finds the sandbox that makes uncharged memory grow, if this memory grows too slowly for experiment.ts. Makes many short
// measurements ("bouts") over several minutes. Sandboxes that may be the cause are called suspects.
//
// In a bout all suspects are frozen; then one group of suspects runs for a moment, and then a second group. Only growth that
// remains after a group is frozen again counts, because busy programs allocate and free memory all the time. The bouts answer three
// questions:
//
// 1. Does memory grow more while all suspects run than while none runs? If not, no sandbox is the cause.
// 2. In each bout the suspects are split into two random halves. Which suspect is most often in the half that grows more?
// 3. Does memory grow more while that suspect runs alone than while none runs? If so, it is the cause.
import type { ExperimentParts } from './experiment.ts'

export type TrialParts = ExperimentParts & {
  /** Time in milliseconds for which each group of sandboxes runs during a measurement. */
  runMs: number
  random?: () => number
}

/** Pause in milliseconds before a measurement. The kernel frees some memory only after a delay. */
const settleMs = 150
/** Maximum number of sandboxes that are frozen at once. From more suspects, each measurement chooses some at random. */
const mostHeld = 64
/** Least standard error, in bytes. A few results may be nearly equal by chance, and the computed error is then too small. */
const leastError = 32 * 1024
/**
 * If memory has grown as fast with frozen suspects as with running suspects in this many measurements, no sandbox counts as the
 * cause.
 */
const boutsForAll = 12
/**
 * Maximum number of measurements in which one suspect runs alone. Without a proof by then, all results about this suspect are
 * dropped.
 */
const boutsAlone = 30
/** A sandbox counts as the cause only if at least this part of the growth of uncharged memory comes from it. */
const leastShare = 1 / 3
/**
 * If memory grows by more than this many times the expected growth (`#expected`), something else is the cause, and the measurement
 * is ignored.
 */
const mostTimesExpected = 8

/**
 * Results of comparisons: the growth of memory in bytes while one group of sandboxes runs, minus the growth while a second group
 * runs.
 */
class Differences {
  count = 0
  #sum = 0
  #squares = 0

  add(bytes: number) {
    this.count += 1
    this.#sum += bytes
    this.#squares += bytes * bytes
  }

  get mean() {
    return this.count === 0 ? 0 : this.#sum / this.count
  }

  /** Sum of the squared deviations from the mean. */
  get scatter() {
    return Math.max(0, this.#squares - this.count * this.mean ** 2)
  }
}

export class Trial {
  readonly #parts: TrialParts
  /** Bytes by which memory is expected to grow within `runMs` if no sandbox is frozen. */
  #expected = Number.POSITIVE_INFINITY
  readonly #all = new Differences()
  readonly #halves = new Map<string, Differences>()
  readonly #alone = new Map<string, Differences>()

  constructor(parts: TrialParts) {
    this.#parts = parts
  }

  /** Whether no sandbox is the cause: memory grows about as much while all suspects are frozen as while they run. */
  get isNobodys(): boolean {
    return this.#all.count >= boutsForAll && this.#certaintyOf(this.#all) < 3
  }

  /**
   * Returns how certain a measured difference is: its mean, divided by the standard error of that mean. A single sandbox has too
   * few measurements for this error, so the error is computed from the measurements of all sandboxes.
   */
  #certaintyOf(differences: Differences): number {
    const { count, mean, scatter } = differences
    if (count < 3) return 0
    const measured = [this.#all, ...this.#alone.values()].filter((one) => one.count > 1)
    const degrees = measured.reduce((sum, one) => sum + one.count - 1, 0)
    const common = degrees === 0 ? 0 : measured.reduce((sum, one) => sum + one.scatter, 0) / degrees
    return mean / Math.sqrt(Math.max(leastError ** 2, common, scatter / (count - 1)) / count)
  }

  /** The sandbox that makes memory grow. Undefined until a sandbox is proven to be the cause. */
  get grower(): string | undefined {
    const isGuilty = (one: Differences) =>
      one.count >= 5 && one.mean >= this.#expected * leastShare && this.#certaintyOf(one) >= 6
    return [...this.#alone].find(([, differences]) => isGuilty(differences))?.[0]
  }

  remove(sandboxId: string) {
    this.#halves.delete(sandboxId)
    this.#alone.delete(sandboxId)
  }

  /** Makes one measurement. `bytesPerSecond`: how fast memory has been growing since the first measurement. */
  async bout(suspects: readonly string[], bytesPerSecond: number): Promise<void> {
    this.#expected = (bytesPerSecond * this.#parts.runMs) / 1000
    const chosen = this.#shuffled(suspects).slice(0, mostHeld)
    if (chosen.length === 0) return
    if (this.#certaintyOf(this.#all) < 3)
      return this.#compare(chosen, chosen, [], (difference) => this.#all.add(difference))
    const leader = this.#leader(suspects)
    if (leader !== undefined) {
      const others = chosen.filter((sandboxId) => sandboxId !== leader)
      await this.#compare([leader, ...others], [leader], [], (difference) => this.#addAlone(leader, difference))
      return
    }
    const half = Math.ceil(chosen.length / 2)
    const halves = [chosen.slice(0, half), chosen.slice(half)] as const
    await this.#compare(chosen, ...halves, (difference) => {
      for (const sandboxId of halves[0]) of(this.#halves, sandboxId).add(difference)
      for (const sandboxId of halves[1]) of(this.#halves, sandboxId).add(-difference)
    })
  }

  /** Returns the suspect that most likely makes memory grow. Undefined while there are too few measurements. */
  #leader(suspects: readonly string[]): string | undefined {
    if (suspects.length === 1) return suspects[0]
    const leastCount = Math.ceil(Math.log2(suspects.length)) + 2
    const meanOf = (sandboxId: string) => of(this.#halves, sandboxId).mean
    const [first] = suspects
      .filter((sandboxId) => of(this.#halves, sandboxId).count >= leastCount)
      .filter((sandboxId) => this.#certaintyOf(of(this.#halves, sandboxId)) >= 1.5)
      .toSorted((one, other) => meanOf(other) - meanOf(one))
    return first
  }

  #addAlone(sandboxId: string, difference: number) {
    const differences = of(this.#alone, sandboxId)
    differences.add(difference)
    const { count } = differences
    if (count >= boutsAlone || (count >= 3 && this.#certaintyOf(differences) < 1)) this.remove(sandboxId)
  }

  #shuffled(sandboxIds: readonly string[]): string[] {
    const { random = Math.random } = this.#parts
    return sandboxIds
      .map((sandboxId) => [random(), sandboxId] as const)
      .toSorted(([one], [other]) => one - other)
      .map(([, sandboxId]) => sandboxId)
  }

  /**
   * Lets the groups `one` and `other` run in turn. Calls `tell` with the bytes by which memory grew more while `one` ran. A sandbox
   * that cannot be frozen is left out. `tell` is not called in these cases:
   * - all sandboxes of a group are left out
   * - a sandbox that has run cannot be frozen afterwards
   * - the difference is so large that something else is its cause (`mostTimesExpected`)
   */
  async #compare(
    all: readonly string[],
    one: readonly string[],
    other: readonly string[],
    tell: (bytes: number) => void,
  ): Promise<void> {
    const { holdStill, uncharged, delay, runMs, random = Math.random } = this.#parts
    const holds = new Map<string, AbortController>()
    /** Freezes these sandboxes. Returns the sandboxes that could be frozen. */
    const hold = async (sandboxIds: readonly string[]): Promise<string[]> => {
      const areStill = sandboxIds.map(async (sandboxId) => {
        const release = new AbortController()
        holds.set(sandboxId, release)
        return holdStill(sandboxId, release.signal)
      })
      const answers = await Promise.all(areStill)
      return sandboxIds.filter((_, index) => answers[index])
    }
    /**
     * Lets these frozen sandboxes run for `runMs`, and freezes them again. Returns by how many bytes uncharged memory has grown.
     * Undefined if a sandbox could not be frozen.
     */
    const kept = async (sandboxIds: readonly string[]): Promise<number | undefined> => {
      const before = uncharged()
      for (const sandboxId of sandboxIds) holds.get(sandboxId)?.abort()
      await delay(runMs)
      if ((await hold(sandboxIds)).length < sandboxIds.length) return undefined
      await delay(settleMs)
      return uncharged() - before
    }
    try {
      const still = new Set(await hold(all))
      const groups = [one, other].map((group) => group.filter((sandboxId) => still.has(sandboxId)))
      if (groups[0]!.length === 0 || (other.length > 0 && groups[1]!.length === 0)) return
      await delay(settleMs)
      // The order is random, because late freeing of the first group's memory makes the second result too small.
      const isReversed = random() < 0.5
      if (isReversed) groups.reverse()
      const [first, second] = [await kept(groups[0]!), await kept(groups[1]!)]
      if (first === undefined || second === undefined) return
      const difference = isReversed ? second - first : first - second
      if (Math.abs(difference) < this.#expected * mostTimesExpected) tell(difference)
    } finally {
      for (const release of holds.values()) release.abort()
    }
  }
}

const of = (differences: Map<string, Differences>, sandboxId: string): Differences => {
  const known = differences.get(sandboxId) ?? new Differences()
  differences.set(sandboxId, known)
  return known
}
