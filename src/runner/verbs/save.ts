// Copies the disk of a stopped sandbox into the archive store, as an archive beside the disk, which stays
// (docs/adr/0043-saved-at-stop.md). Killed anywhere, it can be repeated with the same id.
import { findKept } from '#src/runner/archive/kept-chunks.ts'
import { type Archive, packDisk } from '#src/runner/archive/pack.ts'
import type { Machine } from '#src/runner/machine/machine.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { checkCanReturn, removeOlder } from './archive.ts'

/**
 * Saves a disk. When this resolves, the archive is complete, and older ones of the sandbox are removed. They are removed before
 * anybody hears of the new one: after that, another host may own the sandbox and its archives.
 */
export const saveDisk = async (
  machine: Machine,
  assignment: Assignment,
  archiveId: string,
  signal: AbortSignal,
): Promise<Archive> => {
  const { pool, archiveStore: store } = machine
  const { sandboxId } = assignment
  await checkCanReturn(machine, assignment)
  signal.throwIfAborted()
  const kept = await findKept({ store, sandboxId, signal })
  const disk = pool.diskOf(sandboxId)
  // With one chunk at a time, callers' verbs find threads for their own work.
  const saved = await packDisk({ store, sandboxId, archiveId, disk, chunksAtOnce: 1, kept, signal })
  signal.throwIfAborted()
  await removeOlder(machine, sandboxId, archiveId, signal)
  signal.throwIfAborted()
  return saved
}
