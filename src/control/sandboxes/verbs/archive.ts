import { randomUUID } from 'node:crypto'
import type { Actor } from '#src/control/auth/actor.ts'
import type { RunningParts } from '#src/control/running.ts'
import { stayArchived } from '../record/emptying.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { getSandbox } from '../record/store.ts'
import { moveSandbox, type Occasion } from './move.ts'

/**
 * Returns the columns that control writes to archive a sandbox. If the store has a save of the present disk, the save becomes the
 * archive. Otherwise control names the archive, so a retry of the runner writes the same archive.
 */
export const archiveColumns = ({ save_state }: SandboxRow): Partial<SandboxRow> =>
  save_state === 'saved'
    ? {}
    : {
        archive_id: randomUUID(),
        archive_sha256: null,
        archive_bytes: null,
        archive_stored_bytes: null,
        archive_base: null,
        archived_at: null,
        save_state: null,
      }

/**
 * Asks the runner to move the disk of a sandbox into the object store. A running sandbox is stopped first.
 */
export const archive = (parts: RunningParts, sandbox: SandboxRow, occasion: Occasion): Promise<SandboxRow> =>
  moveSandbox(parts, sandbox, 'archive', {
    ...occasion,
    set: archiveColumns,
  })

export const archiveSandbox = async (parts: RunningParts, actor: Actor, idOrName: string): Promise<SandboxRow> => {
  const sandbox = await getSandbox(parts.database.sql, actor.organization.id, idOrName)
  const moving =
    sandbox.emptying === null ? undefined : await stayArchived(parts.database.sql, sandbox.id, parts.clock.now())
  if (moving) return moving
  return await archive(parts, sandbox, { by: { kind: 'user', id: actor.user.id } })
}
