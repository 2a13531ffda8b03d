// Gives a new sandbox the disk of another as it is now. The other one goes on; if it runs, it is held still meanwhile, so the
// copy is what a crash at that moment would have left of it.
import type { Assignment } from '#src/wire/runner-link.ts'
import type { Adopted } from './adopt.ts'
import { type Machine, NotRecoverable } from './machine.ts'
import { whileHeldStill } from './pause.ts'

/** To be called while no verb of the parent is under way. Does nothing if the disk is there; answers the image below it. */
export const forkDisk = async (
  machine: Machine,
  { sandboxId, diskGiB, image }: Assignment,
  parentId: string,
  parent: Adopted | undefined,
): Promise<string> => {
  const { pool } = machine
  const [isThere, hasParent, belowParent] = await Promise.all([
    pool.exists(sandboxId),
    pool.exists(parentId),
    pool.baseOf({ sandboxId: parentId }),
  ])
  if (isThere) return (await pool.baseOf({ sandboxId })) ?? image
  if (parent === undefined || !hasParent)
    throw new NotRecoverable('The sandbox that was to be forked has no disk on this runner any more.')
  const base = belowParent ?? parent.spec.assignment.image
  await whileHeldStill(machine, parentId, parent.running, () =>
    pool.copyDisk({ sandboxId: parentId }, sandboxId, base, diskGiB),
  )
  return base
}
