import type { Transaction } from '#src/control/storage/database.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { findSandboxById, writeState } from '../record/store.ts'

/**
 * Ends a snapshot whose disk was copied or could not be: the sandbox returns to its state before. Returns the row, for the caller
 * to announce after the transaction; `undefined` if the sandbox is doing something else by now, even another snapshot.
 */
export const endSnapshotting = async (
  transaction: Transaction,
  sandboxId: string,
  image: string,
  reason: string,
  now: Date,
): Promise<SandboxRow | undefined> => {
  // The row is locked: the state that is read here is the state from which the move starts.
  await transaction`select 1 from sandboxes where id = ${sandboxId} for no key update`
  const row = await findSandboxById(transaction, sandboxId)
  const to = row?.desired_state
  if (row?.state !== 'snapshotting' || row.snapshot_image !== image) return undefined
  if (to !== 'started' && to !== 'stopped' && to !== 'paused') return undefined
  const by = { kind: 'runner', id: row.runner_id ?? '' } as const
  const set = { snapshot_image: null, ...(to === 'started' ? { last_activity_at: now } : {}) }
  return await writeState(transaction, row, { to, by, reason, set }, now)
}
