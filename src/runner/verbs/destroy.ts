// Removes a sandbox with everything it had. From the moment its journal is disowned nothing can bring it back, so being
// killed in the middle leaves rubbish that the next runner sweeps, never half a sandbox.

import { settlesWithin } from '#src/kit/settles-within.ts'
import { removeArchives } from '#src/runner/archive/remove.ts'
import type { Machine } from '#src/runner/machine/machine.ts'
import type { Slot } from '#src/runner/network/pool.ts'
import { clearSandbox } from './clear.ts'

/** A store that is slow, or down, does not keep a sandbox from being gone. */
const archivesGoWithinMs = 2_000

/** Archives go only where control said so: a sandbox that this runner merely has no more may live on another. */
export const destroySandbox = async (
  machine: Machine,
  sandboxId: string,
  slot: Slot | undefined,
  withArchives: boolean,
) => {
  const { journal, pool } = machine
  await clearSandbox(machine, sandboxId, slot)
  if (withArchives) await journal.oweArchives(sandboxId)
  await journal.disown(sandboxId)
  await pool.remove(sandboxId)
  if (withArchives) await settlesWithin(removeOwedArchives(machine, sandboxId), archivesGoWithinMs)
  else await journal.forget(sandboxId)
}

/** Owed until it has worked. */
const removeOwedArchives = async (machine: Machine, sandboxId: string): Promise<void> => {
  try {
    await removeArchives({ store: machine.archiveStore, sandboxId })
    await machine.journal.forget(sandboxId)
  } catch (err) {
    machine.log.warn({ err, sandboxId }, 'archives could not be removed yet')
  }
}

export const removeAllOwedArchives = async (machine: Machine): Promise<void> => {
  for (const sandboxId of await machine.journal.listGone())
    if (await machine.journal.owesArchives(sandboxId)) await removeOwedArchives(machine, sandboxId)
}
