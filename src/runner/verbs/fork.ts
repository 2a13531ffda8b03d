// Makes the disk of a new sandbox as a copy of another sandbox's ("parent's") current disk. If the parent runs, it is frozen
// during the copy and then continues. The copy contains what would be on the disk if the parent had crashed at that moment.

import { type Machine, NotRecoverable } from '#src/runner/machine/machine.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import type { Adopted } from './adopt.ts'
import { whileHeldStill } from './pause.ts'

/** Copies the parent's disk. No verb of the parent may be running at that time. Returns the base image of the new disk. */
export const forkDisk = async (
  machine: Machine,
  { sandboxId, diskGiB }: Assignment,
  parentId: string,
  parent: Adopted | undefined,
): Promise<string> => {
  const { pool } = machine
  const [hasParent, belowParent] = await Promise.all([pool.exists(parentId), pool.baseOf({ sandboxId: parentId })])
  if (parent === undefined || !hasParent)
    throw new NotRecoverable('The sandbox that was to be forked has no disk on this runner any more.')
  const base = belowParent ?? parent.spec.assignment.image
  await whileHeldStill(machine, parentId, parent.running, () =>
    pool.copyDisk({ sandboxId: parentId }, sandboxId, base, diskGiB),
  )
  return base
}
