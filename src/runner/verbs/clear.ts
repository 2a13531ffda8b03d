// Removes all that a sandbox has in the kernel and below /run. Its disk and journal stay. May be called at any moment, repeatedly.
import { rm } from 'node:fs/promises'
import { cgroupOf, type Machine } from '#src/runner/machine/machine.ts'
import { socketOf } from '#src/runner/machine/places.ts'
import type { Slot } from '#src/runner/network/pool.ts'
import { showNothing } from '#src/runner/shown/show.ts'

export const clearSandbox = async (machine: Machine, sandboxId: string, slot: Slot | undefined) => {
  const cgroup = cgroupOf(machine, sandboxId)
  // End the processes first: the cgroup, socket and network may be removed only when no process uses them.
  await cgroup.kill()
  await machine.runtime.forget(sandboxId)
  showNothing(machine, sandboxId)
  await Promise.all([
    cgroup.remove(),
    rm(socketOf(machine.places, sandboxId), { force: true }),
    slot && machine.network.release(slot),
  ])
}
