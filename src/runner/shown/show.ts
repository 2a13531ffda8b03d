// Makes programs in a sandbox see the sandbox's own processors and memory instead of the host's.

import { hostCpus, parseCpuList, writeCpuList } from '#src/runner/cgroup/cpus.ts'
import { cgroupOf, type Machine } from '#src/runner/machine/machine.ts'
import { shownOf } from '#src/runner/machine/places.ts'
import { noMemoryUse } from '../cgroup/memory-use.ts'
import { makeShownFiles, removeShownFiles, rewriteShownFiles } from './files.ts'

type Sizes = { sandboxId: string; cpu: number; memoryGiB: number }

/**
 * Chooses a sandbox's processors before its start. Makes the files, such as `/proc/cpuinfo`, that show the sandbox's size to its
 * programs. Returns the list of processors.
 */
export const showMachine = (machine: Machine, { sandboxId, cpu, memoryGiB }: Sizes): string | undefined => {
  const { places, hostCpuinfo } = machine
  const taken = machine.cpus?.take(sandboxId, cpu)
  makeShownFiles(shownOf(places, sandboxId), { memoryGiB, cpus: taken ?? hostCpus(), hostCpuinfo })
  return taken && writeCpuList(taken)
}

/**
 * Chooses a running sandbox's processors again after a resize, and rewrites the files that show the sandbox's size to its programs.
 */
export const showNewSizes = async (machine: Machine, { sandboxId, cpu, memoryGiB }: Sizes): Promise<void> => {
  const { places, hostCpuinfo } = machine
  const cgroup = cgroupOf(machine, sandboxId)
  const taken = machine.cpus?.take(sandboxId, cpu)
  if (taken) await cgroup.useCpus(writeCpuList(taken))
  const shown = { memoryGiB, cpus: taken ?? hostCpus(), hostCpuinfo }
  rewriteShownFiles(shownOf(places, sandboxId), shown, cgroup.memoryUse() ?? noMemoryUse)
}

/** Reads which processors a sandbox of an earlier runner uses, and records them as in use. */
export const adoptShown = async (machine: Machine, { sandboxId, cpu }: Sizes): Promise<void> => {
  const list = machine.cpus && (await cgroupOf(machine, sandboxId).cpus())
  if (list !== undefined) machine.cpus?.adopt(sandboxId, cpu, parseCpuList(list))
}

export const showNothing = (machine: Machine, sandboxId: string): void => {
  machine.cpus?.release(sandboxId)
  removeShownFiles(shownOf(machine.places, sandboxId))
}
