// Updates the memory use that running sandboxes see, and notices when a sandbox reaches a limit but keeps running.
//
// Every two seconds, three small files of each running sandbox are read. Only the counters in these files show that a process
// reached a limit and ended between two reads. An idle sandbox costs about 25 microseconds per read.
import type { Cgroup } from '../cgroup/cgroup.ts'
import { rewriteMeminfo } from './files.ts'

type Refreshed = { cgroup: Cgroup; directory: string; memoryGiB: number }

type Entry = Refreshed & { shownBytes: number } & Counts

/**
 * Numbers since the cgroup was created. `kills`: processes killed for want of memory. `refusals`: processes or threads refused
 * because of the limit of processes.
 */
type Counts = { kills: number; refusals: number }

export type RefresherListeners = {
  /** Called after each read of a sandbox's counters. `kills`: processes killed for want of memory since the cgroup was created. */
  onLook: (sandboxId: string, kills: number) => void
  /** Called if processes were killed for want of memory since the counters were last read. `kills`: their number. */
  onKills: (sandboxId: string, kills: number) => void
  /**
   * Called if processes or threads were refused since the last read, because of the limit of processes. `refusals`: their number.
   */
  onRefusals: (sandboxId: string, refusals: number) => void
  onError: (error: unknown, sandboxId: string) => void
}

const intervalMs = 2_000
/** A smaller change of the memory use does not update /proc/meminfo: most programs show whole MiB. */
const worthShowingBytes = 1024 * 1024
/** Number of sandboxes handled in one turn of the event loop, so that requests do not wait for long. */
const atOnce = 50

export class Refresher {
  readonly #entries = new Map<string, Entry>()
  readonly #listeners: RefresherListeners
  readonly #timer: NodeJS.Timeout
  #isLooking = false

  constructor(listeners: RefresherListeners) {
    this.#listeners = listeners
    this.#timer = setInterval(() => void this.look(), intervalMs).unref()
  }

  /**
   * Adds a sandbox, or updates the limits of a known sandbox. An update reads no counters, so that a resume is fast. Kills and
   * refused processes before the addition are not reported, because an earlier runner has reported them.
   */
  add(sandboxId: string, refreshed: Refreshed) {
    const known = this.#entries.get(sandboxId)
    const counts = known ?? countsOf(refreshed)
    if (known === undefined) this.#listeners.onLook(sandboxId, counts.kills)
    const { kills, refusals } = counts
    this.#entries.set(sandboxId, { ...refreshed, kills, refusals, shownBytes: Number.NEGATIVE_INFINITY })
  }

  remove(sandboxId: string) {
    this.#entries.delete(sandboxId)
  }

  close() {
    clearInterval(this.#timer)
    this.#entries.clear()
  }

  async look() {
    if (this.#isLooking) return
    this.#isLooking = true
    let looked = 0
    for (const [sandboxId, entry] of [...this.#entries]) {
      if (++looked % atOnce === 0) await new Promise(setImmediate)
      if (this.#entries.get(sandboxId) !== entry) continue
      try {
        this.#refresh(sandboxId, entry)
      } catch (error) {
        this.#listeners.onError(error, sandboxId)
      }
    }
    this.#isLooking = false
  }

  #refresh(sandboxId: string, entry: Entry) {
    this.#count(sandboxId, entry)
    const used = entry.cgroup.memoryInUse()
    if (used === undefined || Math.abs(used - entry.shownBytes) < worthShowingBytes) return
    const use = entry.cgroup.memoryUse()
    if (use === undefined) return
    rewriteMeminfo(entry.directory, entry.memoryGiB, use)
    entry.shownBytes = used
  }

  #count(sandboxId: string, entry: Entry) {
    const { kills, refusals } = countsOf(entry)
    this.#listeners.onLook(sandboxId, kills)
    if (kills > entry.kills) this.#listeners.onKills(sandboxId, kills - entry.kills)
    if (refusals > entry.refusals) this.#listeners.onRefusals(sandboxId, refusals - entry.refusals)
    Object.assign(entry, { kills, refusals })
  }
}

const countsOf = ({ cgroup }: Refreshed): Counts => ({
  kills: cgroup.outOfMemoryKills(),
  refusals: cgroup.refusedProcesses(),
})
