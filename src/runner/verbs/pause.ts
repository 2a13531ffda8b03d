// Keeps everything of a sandbox in memory and lets none of it run.
//
// What is frozen is known by the kernel, and for one boot of the machine, so nothing here waits for a disk. A note says
// that the sandbox was meant to be paused: one that is frozen without it was only held still for a moment by a runner that
// did not live to let go. The note alone, of one that is not frozen, means nothing: the two need not wait for each other.
import { cgroupOf, type Machine } from '#src/runner/machine/machine.ts'
import type { Running } from '#src/runner/machine/running.ts'
import { allSettledOrThrow } from './start.ts'

export const pauseSandbox = async (machine: Machine, sandboxId: string, running: Running): Promise<Running> => {
  if (running.isPaused) return running
  const paused = { ...running, isPaused: true }
  await allSettledOrThrow([freeze(machine, sandboxId), note(machine, sandboxId, paused)])
  return paused
}

/** Resumes a sandbox; it may also be one that is not paused. */
export const resumeSandbox = async (machine: Machine, sandboxId: string, running: Running): Promise<Running> => {
  if (!running.isPaused) return running
  const resumed = { ...running, isPaused: false }
  await allSettledOrThrow([cgroupOf(machine, sandboxId).thaw(), note(machine, sandboxId, resumed)])
  return resumed
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

const note = (machine: Machine, sandboxId: string, { init, slot, isPaused }: Running) =>
  machine.journal.writeRun(sandboxId, { bootId: machine.bootId, slot: slot.name, ...init, isPaused })
