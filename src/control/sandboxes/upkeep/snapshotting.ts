import type { Transaction } from '#src/control/storage/database.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { findSandboxById, writeState } from '../record/store.ts'

/**
 * Ends the snapshot verb after the disk was copied, or could not be copied: the sandbox returns to its state before the
 * snapshot. Returns the row; the caller announces the change after the transaction. Returns `undefined` if the sandbox
 * is in another move now, even another snapshot.
 */
export const endSnapshotting = async (
  transaction: Transaction,
  sandboxId: string,
  image: string,
  reason: string,
  now: Date,
): Promise<SandboxRow | undefined> => {
  // The row is locked first, so that the state that is read next is still the state when the move is written.
  await transaction`select 1 from sandboxes where id = ${sandboxId} for no key update`
  const row = await findSandboxById(transaction, sandboxId)
  const to = row?.desired_state
  if (row?.state !== 'snapshotting' || row.snapshot_image !== image) return undefined
  if (to !== 'started' && to !== 'stopped' && to !== 'paused') return undefined
  const by = { kind: 'runner', id: row.runner_id ?? '' } as const
  const set = { snapshot_image: null, ...(to === 'started' ? { last_activity_at: now } : {}) }
  return await writeState(transaction, row, { to, by, reason, set }, now)
}
