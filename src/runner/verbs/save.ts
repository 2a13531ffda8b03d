// Copies the disk of a stopped sandbox into the archive store; the disk stays (docs/adr/0043-saved-at-stop.md). An interrupted save
// can be repeated with the same id.
import { findKept } from '#src/runner/archive/kept-chunks.ts'
import { type Archive, packDisk } from '#src/runner/archive/pack.ts'
import type { Machine } from '#src/runner/machine/machine.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { checkCanReturn, identityOfBase, removeOlder } from './archive.ts'

/**
 * Saves a disk and removes older archives of the sandbox. The removal must come before the report. After the report, another host
 * may take over the sandbox and its archives.
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
  // A single chunk at a time leaves threads of Node's pool free for work that callers wait for.
  const saved = await packDisk({ store, sandboxId, archiveId, disk, base, chunksAtOnce: 1, kept, signal })
  signal.throwIfAborted()
  await removeOlder(machine, sandboxId, archiveId, signal)
  signal.throwIfAborted()
  return saved
}
