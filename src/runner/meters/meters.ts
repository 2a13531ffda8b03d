// Measures the processors, memory and disk that each sandbox uses, from its cgroup and the kernel's quota counters. No process in
// the sandbox takes part, so a paused sandbox can be measured, too.
import { setTimeout as pause, setImmediate } from 'node:timers/promises'
import { GiB } from '#src/runner/cgroup/sandbox-limits.ts'
import { cgroupOf, type Machine } from '#src/runner/machine/machine.ts'
import type { MeterReading } from '#src/wire/meter-reading.ts'
import type { Assignment } from '#src/wire/runner-link.ts'

type Mark = { cpuSeconds: number; at: number }

/** Milliseconds over which `measure` measures the processor use of a sandbox. */
const windowMs = 250
/** Number of sandboxes that are read in one turn of the event loop, so that requests do not have to wait for long. */
const atOnce = 50

export class Meters {
  readonly #machine: Machine
  /** The processor time that each sandbox had used at the last call of `measureAll`, or at `begin`. */
  readonly #marks = new Map<string, Mark>()
  readonly #measuring = new Map<string, Promise<MeterReading | undefined>>()

  constructor(machine: Machine) {
    this.#machine = machine
  }

  /**
   * Stores the processor time that the sandbox has used, unless such a time is stored already. The next call of `measureAll`
   * returns the use since then.
   */
  begin(sandboxId: string) {
    const now = this.#marks.has(sandboxId) ? undefined : this.#mark(sandboxId)
    if (now) this.#marks.set(sandboxId, now)
  }

  forget(sandboxId: string) {
    this.#marks.delete(sandboxId)
  }

  /** Measures a sandbox. Undefined if the sandbox is neither running nor paused. Calls at the same time share one measurement. */
  measure(assignment: Assignment): Promise<MeterReading | undefined> {
    const { sandboxId } = assignment
    const known = this.#measuring.get(sandboxId)
    if (known) return known
    const measuring = this.#measureOne(assignment).finally(() => this.#measuring.delete(sandboxId))
    this.#measuring.set(sandboxId, measuring)
    return measuring
  }

  /**
   * Measures all sandboxes that run or are paused. Returns the results by id. Processor use is the average since the previous call
   * of this method.
   */
  async measureAll(assignments: readonly Assignment[]): Promise<Map<string, MeterReading>> {
    const disks = await this.#machine.pool.sizesOfDisks()
    const readings = new Map<string, MeterReading>()
    for (const [index, assignment] of assignments.entries()) {
      if (index % atOnce === atOnce - 1) await setImmediate()
      const { sandboxId } = assignment
      const before = this.#marks.get(sandboxId)
      const now = this.#mark(sandboxId)
      if (now === undefined) continue
      // If no earlier time is stored for the sandbox any more, it has ended while other sandboxes were measured. Then store no new
      // time.
      if (before) this.#marks.set(sandboxId, now)
      const reading = before && this.#read(assignment, before, now, disks.get(sandboxId))
      if (reading) readings.set(sandboxId, reading)
    }
    return readings
  }

  async #measureOne(assignment: Assignment) {
    const { sandboxId } = assignment
    const before = this.#mark(sandboxId)
    if (before === undefined) return undefined
    const [diskUsed] = await Promise.all([this.#machine.pool.sizeOfDisk(sandboxId), pause(windowMs)])
    const now = this.#mark(sandboxId)
    return now && this.#read(assignment, before, now, diskUsed)
  }

  #mark(sandboxId: string): Mark | undefined {
    const cpuSeconds = cgroupOf(this.#machine, sandboxId).cpuSeconds()
    return cpuSeconds === undefined ? undefined : { cpuSeconds, at: performance.now() }
  }

  #read({ sandboxId, cpu, memoryGiB, diskGiB }: Assignment, before: Mark, now: Mark, diskUsed: number | undefined) {
    const memory = cgroupOf(this.#machine, sandboxId).memoryUse()
    if (memory === undefined) return undefined
    // The kernel counts files in memory (tmpfs) as cached, but cannot free this memory, so these files are subtracted.
    const memCache = Math.min(memory.used, Math.max(0, memory.cached - memory.shared))
    const seconds = (now.at - before.at) / 1000
    const share = seconds > 0 ? (Math.max(0, now.cpuSeconds - before.cpuSeconds) / seconds / cpu) * 100 : 0
    return {
      cpuCount: cpu,
      cpuUsedPct: Math.round(Math.min(share, 100) * 100) / 100,
      memTotal: memoryGiB * GiB,
      memUsed: memory.used - memCache,
      memCache,
      diskTotal: Math.round(diskGiB * GiB),
      ...(diskUsed === undefined ? {} : { diskUsed }),
    }
  }
}
