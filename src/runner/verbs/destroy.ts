// Removes a sandbox from this host. The method `disown` marks the sandbox as removed. If the runner is killed later, the next
// runner removes the files.

import { settlesWithin } from '#src/kit/settles-within.ts'
import { removeArchives } from '#src/runner/archive/remove.ts'
import type { Machine } from '#src/runner/machine/machine.ts'
import type { Slot } from '#src/runner/network/pool.ts'
import { clearSandbox } from './clear.ts'

/** Longest time in milliseconds that a destroy waits for a slow archive store. */
const archivesGoWithinMs = 2_000

/**
 * `withArchives` is true only if control has requested the destroy. Otherwise another runner may have the sandbox and need its
 * archives.
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

/** Tries once to remove the archives. If the store fails, the journal keeps the entry for a later try. */
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
