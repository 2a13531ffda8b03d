// Bases: the files of base images in the store. A disk in the store can be restored only with its base (docs/adr/0046). Control
// keeps a base's row in the table `images` while a disk in the store needs the base, or a runner has the base.
import { addToRunner } from '#src/control/runners/images.ts'
import type { Sql } from '../storage/database.ts'
import { insertBase } from './image-store.ts'

/**
 * Records that the runner has uploaded this base to a shared store. Call this before control records the disk that needs the base.
 * Does nothing for a runner with its own store: see the function `insertBase`.
 */
export const noteBase = async (sql: Sql, runnerId: string, base: string, now: Date): Promise<void> => {
  if (await insertBase(sql, base, runnerId, now)) await addToRunner(sql, runnerId, base)
}
