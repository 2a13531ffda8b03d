// Copies the current disk of a sandbox, the parent, for a new sandbox. A running parent is frozen meanwhile. The copy contains what
// the disk would contain after a crash at that moment.

import { type Machine, NotRecoverable } from '#src/runner/machine/machine.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import type { Adopted } from './adopt.ts'
import { whileHeldStill } from './pause.ts'

/** Copies the parent's disk. No verb of the parent may be running during the copy. Returns the base image of the new disk. */
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
