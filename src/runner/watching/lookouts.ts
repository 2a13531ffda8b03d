// Watches each running or paused sandbox: its end, its use of resources and its uncharged memory. Updates the memory use that
// programs in the sandbox see.

import type { ExperimentParts } from '#src/runner/kernel-memory/experiment.ts'
import { type Evidence, KernelMemoryWatch } from '#src/runner/kernel-memory/watch.ts'
import { cgroupOf, type Machine } from '#src/runner/machine/machine.ts'
import { shownOf } from '#src/runner/machine/places.ts'
import type { Init } from '#src/runner/machine/processes.ts'
import type { Running } from '#src/runner/machine/running.ts'
import { Meters } from '#src/runner/meters/meters.ts'
import { Refresher } from '#src/runner/shown/refresh.ts'
import type { MemoryKillsHere } from '#src/wire/gate-link.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { MemoryKills } from './memory-kills.ts'
import { Mishaps } from './mishaps.ts'
import { Watch } from './watch.ts'

type Listeners = {
  /** Called once, when the first process of a sandbox has ended. */
  onEnd: (sandboxId: string) => void
  /** Called repeatedly as long as a sandbox fills kernel memory to which no limit applies. */
  onTooMuch: (sandboxId: string, evidence: Evidence) => void
  holdStill: ExperimentParts['holdStill']
  /** Called if processes were killed because memory ran out. If this function returns false, it is called again later. */
  onKills: (sandboxId: string, kills: number) => boolean
  /**
   * Called if the limit of processes was reached and new processes were refused. If this function returns false, it is called again
   * later.
   */
  onRefusals: (sandboxId: string, refusals: number) => boolean
}

export class Lookouts {
  readonly meters: Meters
  readonly #machine: Machine
  readonly #watch: Watch
  readonly #kernelMemory: KernelMemoryWatch
  readonly #kills: Mishaps
  readonly #memoryKills = new MemoryKills()
  readonly #refusals: Mishaps
  readonly #refresher: Refresher

  constructor(machine: Machine, { onEnd, onTooMuch, holdStill, onKills, onRefusals }: Listeners) {
    const { log } = machine
    this.#machine = machine
    this.meters = new Meters(machine)
    this.#watch = new Watch(onEnd)
    this.#kernelMemory = new KernelMemoryWatch({ layout: machine.cgroups, onTooMuch, holdStill, log })
    this.#kills = new Mishaps(onKills)
    this.#refusals = new Mishaps(onRefusals)
    this.#refresher = new Refresher({
      onLook: (sandboxId, kills) => this.#memoryKills.look(sandboxId, kills),
      onKills: (sandboxId, kills) => this.#kills.add(sandboxId, kills),
      onRefusals: (sandboxId, refusals) => this.#refusals.add(sandboxId, refusals),
      onError: (err, sandboxId) =>
        log.warn({ err, sandboxId }, 'what it is shown of its memory could not be refreshed'),
    })
  }

  /** Starts all checks of a sandbox. Called again when the sandbox's limits may have changed. */
  begin(sandboxId: string, { memoryGiB }: Assignment, { init }: Running) {
    this.awaitEnd(sandboxId, init)
    this.#kernelMemory.add(sandboxId, { init, cgroup: cgroupOf(this.#machine, sandboxId) })
    this.meters.begin(sandboxId)
    this.#refresher.add(sandboxId, {
      cgroup: cgroupOf(this.#machine, sandboxId),
      directory: shownOf(this.#machine.places, sandboxId),
      memoryGiB,
    })
  }

  /** Reports the end of PID 1 within about a second. A repeated call makes the end be reported again. */
  awaitEnd(sandboxId: string, init: Init) {
    this.#watch.add(sandboxId, init)
  }

  end(sandboxId: string) {
    this.#watch.remove(sandboxId)
    this.#kernelMemory.remove(sandboxId)
    this.meters.forget(sandboxId)
    this.#refresher.remove(sandboxId)
    this.#memoryKills.remove(sandboxId)
    this.#kills.remove(sandboxId)
    this.#refusals.remove(sandboxId)
  }

  /** Returns the number and the times of the kernel's kills for want of memory since the sandbox started. */
  memoryKills(sandboxId: string): MemoryKillsHere {
    const count = cgroupOf(this.#machine, sandboxId).outOfMemoryKills()
    this.#memoryKills.look(sandboxId, count)
    return { count, spans: this.#memoryKills.spans(sandboxId) }
  }

  close() {
    this.#watch.close()
    this.#kernelMemory.close()
    this.#refresher.close()
    this.#kills.close()
    this.#refusals.close()
  }
}
