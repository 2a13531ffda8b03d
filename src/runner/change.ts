// Brings a running sandbox in line with a newer assignment, without a restart.
import { isDeepStrictEqual } from 'node:util'
import type { Assignment } from '#src/wire/runner-link.ts'
import type { Spec } from './journal.ts'
import { cgroupOf, type Machine } from './machine.ts'
import type { Slot } from './network/pool.ts'

/** The journal comes last: it never says more than is true. */
export const changeSandbox = async (machine: Machine, spec: Spec, wanted: Assignment, slot: Slot): Promise<Spec> => {
  const { assignment } = spec
  if (isDeepStrictEqual(assignment, wanted)) return spec
  const { sandboxId } = wanted
  if (!isDeepStrictEqual(assignment.network, wanted.network)) await machine.network.apply(slot, wanted.network)
  if (assignment.cpu !== wanted.cpu || assignment.memoryGiB !== wanted.memoryGiB)
    await cgroupOf(machine, sandboxId).limit(wanted)
  if (assignment.diskGiB !== wanted.diskGiB) await machine.pool.limit(sandboxId, wanted.diskGiB)
  const changed: Spec = { assignment: wanted, status: 'started' }
  await machine.journal.writeSpec(sandboxId, changed)
  return changed
}
