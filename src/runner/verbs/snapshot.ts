// Keeps a copy of a sandbox's current disk as a template: an image over the same base image, whose copies are new disks. A
// running sandbox is frozen meanwhile and then continues.

import { type Machine, NotRecoverable } from '#src/runner/machine/machine.ts'
import type { Adopted } from './adopt.ts'
import { whileHeldStill } from './pause.ts'

/** Makes the template. Call this while no verb of the sandbox is under way. Does nothing if the template exists. */
export const makeTemplate = async (
  machine: Machine,
  template: string,
  sandboxId: string,
  held: Adopted | undefined,
  /** Base image of the template in place of the disk's own base image. Both must have the same files. */
  otherBase?: string,
): Promise<void> => {
  const { pool } = machine
  if ((await pool.baseOf({ template })) !== undefined) return
  if (held === undefined || !(await pool.exists(sandboxId)))
    throw new NotRecoverable('The sandbox has no disk on this runner any more.')
  const base = otherBase ?? (await pool.baseOf({ sandboxId })) ?? held.spec.assignment.image
  await whileHeldStill(machine, sandboxId, held.running, () => pool.makeTemplate(template, sandboxId, base))
}
