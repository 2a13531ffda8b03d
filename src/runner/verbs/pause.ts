// Freezes all processes of a sandbox and keeps them in memory.
//
// A sandbox is paused only if it is frozen and `run.json` records the pause. A freeze without a record lasts only for a moment. If
// the runner is killed meanwhile, the next runner thaws the sandbox. A record without a freeze has no effect. So the runner may
// freeze and record in any order.
import { cgroupOf, type Machine } from '#src/runner/machine/machine.ts'
import type { Running } from '#src/runner/machine/running.ts'
import { allSettledOrThrow } from './start.ts'

export const pauseSandbox = async (machine: Machine, sandboxId: string, running: Running): Promise<Running> => {
  if (running.isPaused) return running
  const paused = { ...running, isPaused: true }
  await allSettledOrThrow([freeze(machine, sandboxId), note(machine, sandboxId, paused)])
  return paused
}

/** Resumes a sandbox. If the sandbox is not paused, does nothing. */
export const resumeSandbox = async (machine: Machine, sandboxId: string, running: Running): Promise<Running> => {
  if (!running.isPaused) return running
  const resumed = { ...running, isPaused: false }
  await allSettledOrThrow([cgroupOf(machine, sandboxId).thaw(), note(machine, sandboxId, resumed)])
  return resumed
}

/** Runs `work` while the sandbox is frozen, so that none of its processes writes to the disk meanwhile. */
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
