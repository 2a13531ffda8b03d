// Bases: files of base images that runners put into the store, so that a disk never lies over other files than those it was made
// on (docs/adr/0046). A base is a row of images. It stays while a copy in the store lies over it, or a runner has it.
import { addToRunner } from '#src/control/runners/images.ts'
import type { Sql } from '../storage/database.ts'
import { insertBase } from './image-store.ts'

/** Notes the base of a copy that a runner has put into the store. Call this before the copy is written. */
export const noteBase = async (sql: Sql, runnerId: string, base: string, now: Date): Promise<void> => {
  if (await insertBase(sql, base, runnerId, now)) await addToRunner(sql, runnerId, base)
}
