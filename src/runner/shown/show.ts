// Adapts what a sandbox sees of its machine to its limits: its processors, and the files that describe processors and memory.

import { hostCpus, parseCpuList, writeCpuList } from '#src/runner/cgroup/cpus.ts'
import { cgroupOf, type Machine } from '#src/runner/machine/machine.ts'
import { shownOf } from '#src/runner/machine/places.ts'
import { noMemoryUse } from '../cgroup/memory-use.ts'
import { makeShownFiles, removeShownFiles, rewriteShownFiles } from './files.ts'

type Sizes = { sandboxId: string; cpu: number; memoryGiB: number }

/**
 * Chooses the processors and makes the shown files of a sandbox before a start. Returns the list of processors that it is bound
 * to.
 */
export const showMachine = (machine: Machine, { sandboxId, cpu, memoryGiB }: Sizes): string | undefined => {
  const { places, hostCpuinfo } = machine
  const taken = machine.cpus?.take(sandboxId, cpu)
  makeShownFiles(shownOf(places, sandboxId), { memoryGiB, cpus: taken ?? hostCpus(), hostCpuinfo })
  return taken && writeCpuList(taken)
}

/** Updates the processors and the shown files after new sizes have been applied. */
export const showNewSizes = async (machine: Machine, { sandboxId, cpu, memoryGiB }: Sizes): Promise<void> => {
  const { places, hostCpuinfo } = machine
  const cgroup = cgroupOf(machine, sandboxId)
  const taken = machine.cpus?.take(sandboxId, cpu)
  if (taken) await cgroup.useCpus(writeCpuList(taken))
  const shown = { memoryGiB, cpus: taken ?? hostCpus(), hostCpuinfo }
  rewriteShownFiles(shownOf(places, sandboxId), shown, cgroup.memoryUse() ?? noMemoryUse)
}

/** Takes over the shown files of a sandbox that runs already. */
export const adoptShown = async (machine: Machine, { sandboxId, cpu }: Sizes): Promise<void> => {
  const list = machine.cpus && (await cgroupOf(machine, sandboxId).cpus())
  if (list !== undefined) machine.cpus?.adopt(sandboxId, cpu, parseCpuList(list))
}

export const showNothing = (machine: Machine, sandboxId: string): void => {
  machine.cpus?.release(sandboxId)
  removeShownFiles(shownOf(machine.places, sandboxId))
}
