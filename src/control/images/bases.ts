// Bases: files of base images that hosts put into the store, so that a disk never lies over other files than those it was made
// on (docs/adr/0046). A base is a row of images. It is wanted while a copy in the store lies over it, or a runner has it.
import { addToRunner } from '#src/control/runners/images.ts'
import type { RunningParts } from '../running.ts'
import { insertBase, isBaseWithCopies } from './image-store.ts'
import { pushImage } from './images.ts'

/**
 * Returns whether copies over this base outlive the runner as the runner's store does. If not, the runner is asked to put the
 * base into the store.
 */
export const isBaseSafe = async (parts: RunningParts, runnerId: string, base: string): Promise<boolean> => {
  const { database, clock } = parts
  const isSafe = await database.transaction(async (transaction) => {
    await insertBase(transaction, base, runnerId, clock.now())
    await addToRunner(transaction, runnerId, base)
    return await isBaseWithCopies(transaction, base, runnerId)
  })
  if (!isSafe) await pushImage(parts, base)
  return isSafe
}
