// Bases: the files of base images that runners uploaded to the store. A disk in the store contains only what differs
// from its base, so it can be restored only with the files of the base (docs/adr/0046). Each base is a row of the table
// `images`. Control keeps the row while a disk in the store needs the base, or a runner has it.
import { addToRunner } from '#src/control/runners/images.ts'
import type { Sql } from '../storage/database.ts'
import { insertBase } from './image-store.ts'

/**
 * Records that the runner has put this base into the store, because a disk there (an archive, a save or a snapshot)
 * needs it. Call this before control records that disk. Does nothing if the store is on the runner's own disk.
 */
export const noteBase = async (sql: Sql, runnerId: string, base: string, now: Date): Promise<void> => {
  if (await insertBase(sql, base, runnerId, now)) await addToRunner(sql, runnerId, base)
}
