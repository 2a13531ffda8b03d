// Makes the disk of an archived sandbox from the archive, completely or not at all. The archive stays in the store.

import { baseOfArchive, unpackDisk } from '#src/runner/archive/unpack.ts'
import type { Machine } from '#src/runner/machine/machine.ts'
import type { ArchiveRef, Assignment } from '#src/wire/runner-link.ts'
import { runSteps } from '../launch.ts'
import { percentOf, type Transfer } from './archive.ts'

export const restoreDisk = async (
  machine: Machine,
  assignment: Assignment,
  archive: Required<ArchiveRef>,
  transfer: Transfer,
): Promise<void> => {
  const { images, archiveStore: store } = machine
  const { sandboxId } = assignment
  const base = await baseOfArchive({ store, sandboxId, archive, signal: transfer.signal })
  const restoreOver = (below?: string) => restoreOverBase(machine, assignment, archive, transfer, below)
  await (base === undefined || images.withBase === undefined
    ? restoreOver()
    : images.withBase(base, transfer, restoreOver))
}

const restoreOverBase = async (
  { pool, launcher, archiveStore: store }: Machine,
  { sandboxId, diskGiB }: Assignment,
  archive: Required<ArchiveRef>,
  { signal, onProgress }: Transfer,
  below: string | undefined,
): Promise<void> => {
  // If an earlier restore was interrupted, its unfinished disk still exists and is removed first.
  await pool.remove(sandboxId)
  try {
    // In a full pool, btrfs can make the disk but may have no space for the next step.
    await runSteps(launcher, pool.stepsToMakeEmpty(sandboxId, diskGiB))
    await unpackDisk({
      launcher,
      store,
      sandboxId,
      archive,
      disk: pool.diskOf(sandboxId),
      ...(below === undefined ? {} : { below }),
      onProgress: ({ bytes, of }) => onProgress({ step: 'restoring', percent: percentOf(bytes, of) }),
      signal,
    })
  } catch (error) {
    // If the disk cannot be removed, the next restore removes it.
    await pool.remove(sandboxId).catch(() => {})
    throw error
  }
}
