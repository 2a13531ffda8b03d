// Keeps the disk of a sandbox, as it is now, as an image for others: a template that new disks are copies of, over the
// same image below. The sandbox goes on; if it runs, it is held still meanwhile.

import { type Machine, NotRecoverable } from '#src/runner/machine/machine.ts'
import type { Adopted } from './adopt.ts'
import { whileHeldStill } from './pause.ts'

/** To be called while no verb of the sandbox is under way. Does nothing if the template is there. */
export const makeTemplate = async (
  machine: Machine,
  template: string,
  sandboxId: string,
  held: Adopted | undefined,
  /** An image with the files of the one below the disk, which the template lies over instead. */
  otherBase?: string,
): Promise<void> => {
  const { pool } = machine
  if ((await pool.baseOf({ template })) !== undefined) return
  if (held === undefined || !(await pool.exists(sandboxId)))
    throw new NotRecoverable('The sandbox has no disk on this runner any more.')
  const base = otherBase ?? (await pool.baseOf({ sandboxId })) ?? held.spec.assignment.image
  await whileHeldStill(machine, sandboxId, held.running, () => pool.makeTemplate(template, sandboxId, base))
}
