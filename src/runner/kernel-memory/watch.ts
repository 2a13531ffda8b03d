// Finds a sandbox that fills uncharged memory. The caller ends that sandbox before the host runs out of memory.
//
// Twice a second two small files of the host are read. Sandboxes are examined only while uncharged memory grows. First the memory
// of their sockets is read, which is exact (sockets.ts). Then sandboxes are frozen for a moment (experiment.ts). If neither finds
// the sandbox, an inquiry measures for minutes (inquiry.ts). A sandbox is ended only if one of these three ways has found it.
// docs/reference/kernel-memory.md describes other kinds of kernel memory and their limits.
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '#src/kit/log.ts'
import { repeat } from '#src/kit/repeat.ts'
import type { Init } from '#src/runner/machine/processes.ts'
import type { Cgroup } from '../cgroup/cgroup.ts'
import type { CgroupLayout } from '../cgroup/layout.ts'
import { reserveBytes } from '../cgroup/reserve.ts'
import { type ExperimentParts, findGrower } from './experiment.ts'
import { readKernelMemory, socketBytes, unchargedBytes } from './host-memory.ts'
import { type Finding, Inquiry } from './inquiry.ts'
import { Ledger } from './ledger.ts'
import { readUnchargedSlabs } from './slabs.ts'
import { type FullSockets, findFullSockets } from './sockets.ts'

const MiB = 1024 ** 2
const everySeconds = 0.5
/** While uncharged memory does not grow, only every 20th check reads how much CPU time the kernel has spent for each sandbox. */
const quietLooks = 20

const standardBounds = {
  /** Sandboxes are examined when uncharged memory has grown by this many bytes. */
  grownBytes: 128 * MiB,
  /** When memory has grown by this many bytes, `Ledger.note` blames the sandboxes that ran meanwhile. */
  blamedBytes: 16 * MiB,
  /** Pause in milliseconds between two measurements of an inquiry (`Inquiry.step`), if the host is not short of memory. */
  pauseMs: 30_000,
  /** How long a group of sandboxes runs during each measurement of an inquiry, in milliseconds. */
  runMs: 750,
}

/**
 * Pause in milliseconds between two measurements of an inquiry on a host that is short of memory. The pause is long enough for
 * growth to be measured.
 */
const shortPauseMs = 2000

/** Number of sandboxes that are examined in one turn of the event loop, so that other requests need not wait. */
const atOnce = 50

export type Evidence = FullSockets | 'growth'

export type KernelMemoryWatchParts = Pick<ExperimentParts, 'holdStill'> & {
  layout: CgroupLayout
  /** Called with a sandbox that uses too much uncharged memory. Called again at each later check that finds the same sandbox. */
  onTooMuch: (sandboxId: string, evidence: Evidence) => void
  log: Logger
  bounds?: Partial<typeof standardBounds>
}

type Watched = { init: Init; cgroup: Pick<Cgroup, 'systemSeconds'> }

export class KernelMemoryWatch {
  readonly #watched = new Map<string, Watched>()
  readonly #parts: KernelMemoryWatchParts
  readonly #bounds: typeof standardBounds
  readonly #ledger = new Ledger()
  readonly #stop: () => void
  /**
   * Growth of uncharged memory is measured from this number of bytes: the lowest since the last search (`#find`) that found no
   * sandbox.
   */
  #base = Number.POSITIVE_INFINITY
  #baseAt = performance.now()
  #inquiry: Inquiry | undefined
  /** Time of the inquiry's last measurement (`Inquiry.step`). Before the first measurement: time at which the inquiry began. */
  #inquiredAt = 0
  #noted = Number.POSITIVE_INFINITY
  #looksSinceNote = quietLooks

  constructor(parts: KernelMemoryWatchParts) {
    this.#parts = parts
    this.#bounds = { ...standardBounds, ...parts.bounds }
    this.#stop = repeat(
      everySeconds,
      () => this.look(),
      (err) => parts.log.warn({ err }, 'the kernel’s memory could not be looked at'),
    )
  }

  add(sandboxId: string, watched: Watched) {
    this.#watched.set(sandboxId, watched)
  }

  remove(sandboxId: string) {
    this.#watched.delete(sandboxId)
    this.#ledger.remove(sandboxId)
    this.#inquiry?.remove(sandboxId)
  }

  close() {
    this.#stop()
    this.#watched.clear()
  }

  async look(): Promise<void> {
    const { grownBytes, blamedBytes } = this.#bounds
    const now = this.#uncharged()
    if (now - this.#noted >= blamedBytes || ++this.#looksSinceNote >= quietLooks) await this.#note(now)
    this.#noted = Math.min(this.#noted, now)
    if (now < this.#base) {
      this.#setBase(now)
      this.#ledger.forgive()
    }
    if (now >= this.#base + grownBytes) {
      if (now > this.#noted) await this.#note(now)
      if (await this.#find(now - this.#base)) return
      this.#inquire(now)
      this.#setBase(this.#uncharged())
    }
    await this.#goOnInquiring()
  }

  #setBase(bytes: number) {
    this.#base = bytes
    this.#baseAt = performance.now()
  }

  #inquire(now: number) {
    if (this.#inquiry !== undefined) return
    const seconds = (performance.now() - this.#baseAt) / 1000
    this.#inquiry = new Inquiry(
      {
        uncharged: () => this.#ownUncharged(),
        slabs: readUnchargedSlabs,
        holdStill: this.#parts.holdStill,
        runMs: this.#bounds.runMs,
        delay,
        now: () => performance.now(),
      },
      (now - this.#base) / seconds,
    )
    this.#inquiredAt = performance.now()
  }

  async #goOnInquiring() {
    if (this.#inquiry === undefined) return
    const pauseMs = this.#isInDanger() ? Math.min(shortPauseMs, this.#bounds.pauseMs) : this.#bounds.pauseMs
    if (performance.now() - this.#inquiredAt < pauseMs) return
    const suspects = this.#ledger.suspects().map(([sandboxId]) => sandboxId)
    const finding: Finding = await this.#inquiry.step(suspects.length > 0 ? suspects : [...this.#watched.keys()])
    this.#inquiredAt = performance.now()
    if (finding === 'nothing yet') return
    this.#inquiry = undefined
    if (finding === 'over') this.#parts.log.info('uncharged memory of the kernel grew, by no sandbox’s doing')
    else this.#tell(finding.grower, 'growth')
  }

  #uncharged() {
    return unchargedBytes(this.#parts.layout, readKernelMemory())
  }

  /**
   * Returns the uncharged memory without data in sockets. Data in the gate's sockets is no danger: this data waits for slow
   * clients. Data in sandboxes' sockets is limited, or the method `#findFullSockets` checks it.
   */
  #ownUncharged() {
    return this.#uncharged() - socketBytes()
  }

  async #note(now: number) {
    const seconds = new Map<string, number>()
    let read = 0
    for (const [sandboxId, { cgroup }] of [...this.#watched]) {
      if (++read % atOnce === 0) await new Promise(setImmediate)
      const one = cgroup.systemSeconds()
      if (one !== undefined) seconds.set(sandboxId, one)
    }
    const grown = now - this.#noted
    this.#ledger.note(Number.isFinite(grown) ? Math.max(0, grown) : 0, seconds)
    this.#noted = now
    this.#looksSinceNote = 0
  }

  /** Looks for the sandbox that makes uncharged memory grow. Returns whether a sandbox was found and reported. */
  async #find(grown: number): Promise<boolean> {
    if (await this.#findFullSockets()) return true
    // Only sandboxes for which the kernel has spent CPU time while memory grew are suspects: the kernel has allocated no memory for
    // the others.
    const suspects = this.#ledger.suspects()
    const grower = await findGrower(
      { uncharged: () => this.#ownUncharged(), holdStill: this.#parts.holdStill, delay },
      suspects.map(([sandboxId]) => sandboxId),
    )
    return grower !== undefined && this.#tell(grower, 'growth', grown)
  }

  async #findFullSockets(): Promise<boolean> {
    let looked = 0
    let isFound = false
    for (const [sandboxId, { init }] of [...this.#watched]) {
      if (++looked % atOnce === 0) await new Promise(setImmediate)
      // An error is ignored, because it means that the sandbox has ended.
      const kind = await findFullSockets(init.pid).catch(() => undefined)
      if (kind !== undefined) isFound = this.#tell(sandboxId, kind)
    }
    return isFound
  }

  #tell(sandboxId: string, evidence: Evidence, grownBytes?: number) {
    if (!this.#watched.has(sandboxId)) return false
    this.#parts.log.warn({ sandboxId, evidence, grownBytes }, 'fills the kernel’s memory')
    this.#ledger.remove(sandboxId)
    this.#parts.onTooMuch(sandboxId, evidence)
    return true
  }

  #isInDanger() {
    const { available, total } = readKernelMemory()
    return available < reserveBytes(total)
  }
}
