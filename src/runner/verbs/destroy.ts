// Removes a sandbox and everything it had. Once its journal entry is disowned, nothing can bring the sandbox back. A runner that
// is killed during a destroy leaves only files for the next runner to remove.

import { settlesWithin } from '#src/kit/settles-within.ts'
import { removeArchives } from '#src/runner/archive/remove.ts'
import type { Machine } from '#src/runner/machine/machine.ts'
import type { Slot } from '#src/runner/network/pool.ts'
import { clearSandbox } from './clear.ts'

/** A slow or failing store delays a destroy by at most this time. */
const archivesGoWithinMs = 2_000

/**
 * Destroys a sandbox. Its archives are removed only on control's request: a sandbox that this runner has lost may exist on
 * another runner.
 */
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

/** Tries once to remove the archives of a destroyed sandbox. If that fails, a later call tries again. */
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
