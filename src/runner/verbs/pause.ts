// Freezes all processes of a sandbox and keeps them in memory.
//
// The kernel knows what is frozen, for one boot of the machine, so nothing here waits for a disk. A note in `run.json` says that
// the sandbox was meant to be paused. A sandbox that is frozen without this note was frozen for a moment by a runner that was
// then killed. The note of a sandbox that is not frozen means nothing, so the order of freeze and note does not matter.
import { cgroupOf, type Machine } from '#src/runner/machine/machine.ts'
import type { Running } from '#src/runner/machine/running.ts'
import { allSettledOrThrow } from './start.ts'

export const pauseSandbox = async (machine: Machine, sandboxId: string, running: Running): Promise<Running> => {
  if (running.isPaused) return running
  const paused = { ...running, isPaused: true }
  await allSettledOrThrow([freeze(machine, sandboxId), note(machine, sandboxId, paused)])
  return paused
}

/** Resumes a sandbox. Does nothing for a sandbox that is not paused. */
export const resumeSandbox = async (machine: Machine, sandboxId: string, running: Running): Promise<Running> => {
  if (!running.isPaused) return running
  const resumed = { ...running, isPaused: false }
  await allSettledOrThrow([cgroupOf(machine, sandboxId).thaw(), note(machine, sandboxId, resumed)])
  return resumed
}

/** Freezes the sandbox while `work` runs, so that its processes write nothing to its disk. */
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

const note = (machine: Machine, sandboxId: string, { init, slot, isPaused }: Running) =>
  machine.journal.writeRun(sandboxId, { bootId: machine.bootId, slot: slot.name, ...init, isPaused })
