import type { Transaction } from '#src/control/storage/database.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { findSandboxById, writeState } from '../record/store.ts'

/**
 * Ends the snapshot verb after the runner has copied the disk, or has failed to. The sandbox returns to its earlier state.
 * Returns the row, which the caller must announce after the transaction. Undefined if the sandbox already does something
 * else.
 */
export const endSnapshotting = async (
  transaction: Transaction,
  sandboxId: string,
  image: string,
  reason: string,
  now: Date,
): Promise<SandboxRow | undefined> => {
  // Locks the row, so that the sandbox's state cannot change between the read and the write.
  await transaction`select 1 from sandboxes where id = ${sandboxId} for no key update`
  const row = await findSandboxById(transaction, sandboxId)
  const to = row?.desired_state
  if (row?.state !== 'snapshotting' || row.snapshot_image !== image) return undefined
  if (to !== 'started' && to !== 'stopped' && to !== 'paused') return undefined
  const by = { kind: 'runner', id: row.runner_id ?? '' } as const
  const set = { snapshot_image: null, ...(to === 'started' ? { last_activity_at: now } : {}) }
  return await writeState(transaction, row, { to, by, reason, set }, now)
}
