import type { Actor } from '#src/control/auth/actor.ts'
import { findAnyRunner } from '#src/control/runners/service.ts'
import type { RunningParts } from '#src/control/running.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { type By, getSandbox, writeState } from '../record/store.ts'
import { moveSandbox, type Occasion } from './move.ts'

/**
 * Requests that a sandbox is destroyed, in any state. The request cancels a move under way, and frees the sandbox's name
 * immediately.
 */
export const destroy = async (parts: RunningParts, sandbox: SandboxRow, occasion: Occasion): Promise<SandboxRow> => {
  const row = await moveSandbox(parts, sandbox, 'delete', {
    ...occasion,
    set: ({ name }) => ({
      name: name.startsWith(destroyedPrefix) ? name : `${destroyedPrefix}${name}_${parts.clock.now().getTime()}`,
      stop_signal: 'SIGKILL',
    }),
    check: whoeverThereIs,
    checksWhen: isOnlyInStore,
  })
  const isOver = row.state === 'destroying' && row.runner_id === null
  return isOver ? await endWithoutRunner(parts, row, occasion.by) : row
}

/** Sets a sandbox without a runner, or of a removed runner, to `destroyed`. No host has anything to remove. */
export const endWithoutRunner = async (
  { database, clock, changes }: RunningParts,
  row: SandboxRow,
  by: By,
): Promise<SandboxRow> => {
  const now = clock.now()
  const change = { to: 'destroyed', by, set: { destroyed_at: now, gone_at: now } } as const
  const written = await writeState(database.sql, row, change, now)
  if (written) changes.announce(row.state, written)
  return written ?? row
}

/**
 * Returns whether only the object store has files of the sandbox. A sandbox that is not `archived` may have lost its runner and
 * disk, and still have an older archive.
 */
const isOnlyInStore = ({ state, runner_id, archive_id }: SandboxRow): boolean =>
  state === 'archived' || (runner_id === null && archive_id !== null)

/** Chooses any runner of the region to delete the archive. A silent runner deletes the archive after it reconnects. */
const whoeverThereIs = async (transaction: Transaction, sandbox: SandboxRow): Promise<Partial<SandboxRow>> => ({
  runner_id: await findAnyRunner(transaction, sandbox.region_id, sandbox.runner_id),
})

export const deleteSandbox = async (parts: RunningParts, actor: Actor, idOrName: string): Promise<SandboxRow> => {
  const sandbox = await getSandbox(parts.database.sql, actor.organization.id, idOrName)
  return await destroy(parts, sandbox, { by: { kind: 'user', id: actor.user.id } })
}

export const destroyedPrefix = 'DESTROYED_'
