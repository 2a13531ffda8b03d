// Applies a newer assignment to a running or paused sandbox, without restarting the sandbox.
import { isDeepStrictEqual } from 'node:util'
import { MemoryInUse } from '#src/runner/cgroup/cgroup.ts'
import { GiB, sharedMemoryBytes } from '#src/runner/cgroup/sandbox-limits.ts'
import type { Spec } from '#src/runner/machine/journal.ts'
import { cgroupOf, type Machine } from '#src/runner/machine/machine.ts'
import type { Init } from '#src/runner/machine/processes.ts'
import type { Running } from '#src/runner/machine/running.ts'
import { showNewSizes } from '#src/runner/shown/show.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { LaunchFailed, runSteps, step } from '../launch.ts'
import { startEntrypoint } from './entrypoint.ts'
import { placeTrust } from './trust.ts'

/** Applies the assignment `wanted` to a running or paused sandbox. If one new size is refused, all sizes stay unchanged. */
export const changeSandbox = async (
  machine: Machine,
  spec: Spec,
  wanted: Assignment,
  { slot, init }: Pick<Running, 'slot' | 'init'>,
): Promise<Spec> => {
  const { assignment } = spec
  if (isDeepStrictEqual(assignment, wanted)) return spec
  const { sandboxId } = wanted
  const { network, organizationId } = wanted
  // A claim changes the organization, which the firewall must know even if the network policy is unchanged.
  if (!isDeepStrictEqual(assignment.network, network) || assignment.organizationId !== organizationId)
    await machine.network.apply(slot, network, organizationId, sandboxId)
  const refused = await resize(machine, assignment, wanted, init)
  if (assignment.authority !== wanted.authority) await placeTrust(machine, sandboxId, wanted.authority)
  if (assignment.isWarm && !wanted.isWarm) await startEntrypoint(machine, wanted)
  const { cpu, memoryGiB, diskGiB } = refused === undefined ? wanted : assignment
  const changed: Spec = {
    assignment: { ...wanted, cpu, memoryGiB, diskGiB },
    status: 'started',
    ...(refused === undefined ? {} : { refused }),
  }
  // Write new environment variables to the disk before the report, because the next runner reads the variables there. Other kinds
  // of change may be written after the report: if a crash loses one, control sends it again. A lost claim of a warm sandbox is sent
  // again before any call reaches the sandbox.
  const isUpdateOfVariables = !assignment.isWarm && !hasSameVariables(assignment, wanted)
  if (refused !== undefined || isUpdateOfVariables) await machine.journal.rewriteSpec(sandboxId, changed)
  else if (!isDeepStrictEqual(lasting(assignment), lasting(wanted)))
    machine.journal.rewriteSpecLate(sandboxId, changed, (err) =>
      machine.log.error({ err, sandboxId }, 'the journal could not be written'),
    )
  return changed
}

const hasSameVariables = (one: Assignment, other: Assignment): boolean =>
  isDeepStrictEqual([one.env, one.unsetEnv], [other.env, other.unsetEnv])

/**
 * Blanks the fields that a pause or resume changes. If only these fields change, the journal is not written, because control sends
 * them again.
 */
const lasting = (assignment: Assignment) => ({ ...assignment, generation: 0, target: 0, signal: 0 })

/** Applies new sizes. Returns a sentence for the caller if the sandbox cannot have them. */
const resize = async (
  machine: Machine,
  now: Assignment,
  wanted: Assignment,
  init: Init,
): Promise<string | undefined> => {
  const { sandboxId } = wanted
  const cgroup = cgroupOf(machine, sandboxId)
  if (now.cpu !== wanted.cpu || now.memoryGiB !== wanted.memoryGiB) {
    try {
      await cgroup.limit(wanted)
    } catch (error) {
      if (!(error instanceof MemoryInUse)) throw error
      return `The sandbox uses ${inGiB(error.usedBytes)} GiB of memory, so it cannot be given ${wanted.memoryGiB} GiB.`
    }
  }
  if (now.memoryGiB !== wanted.memoryGiB) {
    const bytes = sharedMemoryBytes(wanted.memoryGiB)
    try {
      await runSteps(machine.launcher, [step.sharedMemory(init.pid, bytes)])
    } catch (error) {
      await cgroup.limit(now)
      if (!(error instanceof LaunchFailed) || wanted.memoryGiB > now.memoryGiB) throw error
      machine.log.info({ err: error, sandboxId }, 'shared memory cannot be made smaller')
      return `More than ${inGiB(bytes)} GiB of /dev/shm, half of its memory, is in use, so it cannot be given ${wanted.memoryGiB} GiB.`
    }
  }
  if (now.diskGiB !== wanted.diskGiB) {
    try {
      await machine.pool.limit(sandboxId, wanted.diskGiB)
    } catch (error) {
      await cgroup.limit(now)
      if (now.memoryGiB !== wanted.memoryGiB)
        await runSteps(machine.launcher, [step.sharedMemory(init.pid, sharedMemoryBytes(now.memoryGiB))])
      throw error
    }
  }
  if (now.cpu !== wanted.cpu || now.memoryGiB !== wanted.memoryGiB) await showNewSizes(machine, wanted)
  return undefined
}

const inGiB = (bytes: number) => Math.ceil((bytes / GiB) * 100) / 100
