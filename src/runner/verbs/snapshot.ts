// Copies the current disk of a sandbox as a template for new sandboxes. A running sandbox is frozen meanwhile.

import { type Machine, NotRecoverable } from '#src/runner/machine/machine.ts'
import type { Adopted } from './adopt.ts'
import { whileHeldStill } from './pause.ts'

/** Makes the template, unless it exists. No verb of the sandbox may be running at that time. */
export const makeTemplate = async (
  machine: Machine,
  template: string,
  sandboxId: string,
  held: Adopted | undefined,
  /** Base image to record in place of the disk's own. Both base images must have the same files. */
  otherBase?: string,
): Promise<void> => {
  const { pool } = machine
  if ((await pool.baseOf({ template })) !== undefined) return
  if (held === undefined || !(await pool.exists(sandboxId)))
    throw new NotRecoverable('The sandbox has no disk on this runner any more.')
  const base = otherBase ?? (await pool.baseOf({ sandboxId })) ?? held.spec.assignment.image
  await whileHeldStill(machine, sandboxId, held.running, () => pool.makeTemplate(template, sandboxId, base))
}
