// Asks runners to save stopped sandboxes in the archive store, in regions where the operator has switched saving on. All progress
// is in the sandboxes' rows, so another control process can continue. While a save is requested, each assignment of the sandbox
// contains the request.
import { noteBase } from '#src/control/images/bases.ts'
import type { RunningParts } from '#src/control/running.ts'
import type { SavedDisk, UnsavedDisk } from '#src/wire/runner-link.ts'
import { asText } from '../record/cause.ts'
import { dropSaves, isSaveWanted, noteUnsaved, wantSaves, writeSaved } from '../record/saves.ts'

export const sweepSaves = async ({ database, changes }: RunningParts): Promise<void> => {
  await dropSaves(database.sql)
  for (const row of await wantSaves(database.sql)) changes.renew(row)
}

const sizeOf = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`

/**
 * Applies a runner's message that a save is complete. The runner repeats the message until control no longer requests
 * the save.
 */
export const applySaved = async (
  { database, clock }: RunningParts,
  runnerId: string,
  { sandboxId, archive }: SavedDisk,
): Promise<void> => {
  if (archive.base !== undefined) {
    if (!(await isSaveWanted(database.sql, { runnerId, sandboxId, archive }))) return
    await noteBase(database.sql, runnerId, archive.base, clock.now())
  }
  const reason = `Its disk is saved: ${sizeOf(archive.storedBytes)} in the store.`
  await writeSaved(database.sql, { runnerId, sandboxId, archive, reason }, clock.now())
}

export const applyUnsaved = async (
  { database, clock }: RunningParts,
  runnerId: string,
  { sandboxId, archiveId, reason }: UnsavedDisk,
): Promise<void> => {
  const said = `Its disk could not be saved; Alcove will try again: ${asText(reason)}`
  await noteUnsaved(database.sql, { runnerId, sandboxId, archiveId, reason: said }, clock.now())
}
