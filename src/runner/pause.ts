// Keeps everything of a sandbox in memory and lets none of it run.
//
// What is frozen is known by the kernel, and for one boot of the machine, so nothing here waits for a disk. A note says
// that the sandbox was meant to be paused: one that is frozen without it was only held still for a moment by a runner that
// did not live to let go.
import { cgroupOf, type Machine } from './machine.ts'
import type { Running } from './start.ts'

export const pauseSandbox = async (machine: Machine, sandboxId: string, running: Running): Promise<Running> => {
  if (running.isPaused) return running
  await freeze(machine, sandboxId)
  return note(machine, sandboxId, { ...running, isPaused: true })
}

/** Fine for one that is not paused. */
export const resumeSandbox = async (machine: Machine, sandboxId: string, running: Running): Promise<Running> => {
  if (!running.isPaused) return running
  await cgroupOf(machine, sandboxId).thaw()
  return note(machine, sandboxId, { ...running, isPaused: false })
}

/** Nothing inside runs, and so nothing is half written by it, while `work` goes on. */
export const whileHeldStill = async <T>(
  machine: Machine,
  sandboxId: string,
  running: Running | undefined,
  work: () => Promise<T>,
): Promise<T> => {
  if (running === undefined || running.isPaused) return work()
  await freeze(machine, sandboxId)
  try {
    return await work()
  } finally {
    await cgroupOf(machine, sandboxId).thaw()
  }
}

const freeze = async (machine: Machine, sandboxId: string) => {
  const cgroup = cgroupOf(machine, sandboxId)
  try {
    await cgroup.freeze()
  } catch (error) {
    await cgroup.thaw()
    throw error
  }
}

const note = async (machine: Machine, sandboxId: string, running: Running) => {
  const { init, slot, isPaused } = running
  await machine.journal.writeRun(sandboxId, { bootId: machine.bootId, slot: slot.name, ...init, isPaused })
  return running
}
