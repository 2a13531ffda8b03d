// Leftovers: old disks that a lost runner may still have of sandboxes that can start elsewhere. When the runner is back, control
// orders the runner to destroy these disks, with a newer generation. A sandbox is never placed on a runner that has a leftover of
// that sandbox.
import type { Piece, Sql, Transaction } from '#src/control/storage/database.ts'
import type { SandboxRow } from './sandbox.ts'

type Leftover = { sandboxId: string; runnerId: string; generation: number }

export const addLeftover = async (
  transaction: Transaction,
  { sandboxId, runnerId, generation }: Leftover,
): Promise<void> => {
  await transaction`
    insert into leftovers (sandbox_id, runner_id, generation) values (${sandboxId}, ${runnerId}, ${generation})
    on conflict (sandbox_id, runner_id) do update set generation = excluded.generation`
}

/** Deletes the row of a leftover. Returns whether there was such a row. */
export const removeLeftover = async (sql: Sql, { sandboxId, runnerId, generation }: Leftover): Promise<boolean> => {
  const { count } = await sql`
    delete from leftovers where sandbox_id = ${sandboxId} and runner_id = ${runnerId} and generation = ${generation}`
  return count > 0
}

/** Deletes the rows of all leftovers on a runner that was removed for good. */
export const forgetLeftoversOn = async (sql: Sql, runnerId: string): Promise<void> => {
  await sql`delete from leftovers where runner_id = ${runnerId}`
}

/** SQL condition: the runner `runnerId` has no leftover of the sandbox. */
export const hasNoLeftover = (sql: Sql, sandboxId: string, runnerId: Piece): Piece => sql`
  not exists (select from leftovers where sandbox_id = ${sandboxId} and leftovers.runner_id = ${runnerId})`

/**
 * Returns a row whose assignment tells a runner to destroy a leftover. The assignment names no archive. Otherwise the runner would
 * delete the archive, which the sandbox still needs.
 */
export const asLeftover = (row: SandboxRow, generation: number): SandboxRow => ({
  ...row,
  generation,
  ...{ state: 'destroying', desired_state: 'destroyed', archive_id: null, archived_at: null, stop_signal: 'SIGKILL' },
  ...{ env: {}, secrets: [], volumes: [] },
})
