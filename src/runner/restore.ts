// Makes the disk of an archived sandbox again, as it was, or nothing. The archive stays in its store.
import type { ArchiveRef, Assignment } from '#src/wire/runner-link.ts'
import { unpackDisk } from './archive/unpack.ts'
import { percentOf, type Transfer } from './archive.ts'
import { runSteps } from './launch.ts'
import type { Machine } from './machine.ts'

export const restoreDisk = async (
  { pool, launcher, archiveStore: store }: Machine,
  { sandboxId, diskGiB }: Assignment,
  archive: Required<ArchiveRef>,
  { signal, onProgress }: Transfer,
): Promise<void> => {
  // What a runner left that was killed here.
  await pool.remove(sandboxId)
  await runSteps(launcher, pool.stepsToMakeEmpty(sandboxId, diskGiB))
  try {
    await unpackDisk({
      launcher,
      store,
      sandboxId,
      archive,
      disk: pool.diskOf(sandboxId),
      onProgress: ({ bytes, of }) => onProgress({ step: 'restoring', percent: percentOf(bytes, of) }),
      signal,
    })
  } catch (error) {
    await pool.remove(sandboxId)
    throw error
  }
}
