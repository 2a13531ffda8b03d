// Copies the disk of a stopped sandbox into the archive store. The disk stays on the host (docs/adr/0043-saved-at-stop.md). If
// the runner is killed during a save, the save can be repeated with the same id.
import { findKept } from '#src/runner/archive/kept-chunks.ts'
import { type Archive, packDisk } from '#src/runner/archive/pack.ts'
import type { Machine } from '#src/runner/machine/machine.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { checkCanReturn, identityOfBase, removeOlder } from './archive.ts'

/**
 * Saves a disk. When this resolves, the new archive is complete, and older archives of the sandbox are removed. They must be
 * removed before the save is reported, because after the report another host may take over the sandbox and its archives.
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
  const base = await identityOfBase(machine, assignment, signal)
  // Packs only one chunk at a time, so that Node's thread pool has free threads for other work of the runner, for which callers
  // wait.
  const saved = await packDisk({ store, sandboxId, archiveId, disk, base, chunksAtOnce: 1, kept, signal })
  signal.throwIfAborted()
  await removeOlder(machine, sandboxId, archiveId, signal)
  signal.throwIfAborted()
  return saved
}
