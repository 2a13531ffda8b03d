// Saves: copies of stopped disks in the archive store, in regions with `savesStopped` (docs/adr/0043-saved-at-stop.md). A save uses
// the columns of an archive, but the disk stays on its host. `save_state` shows whether the save is up to date. The trigger
// `forget_save` clears `save_state` when the sandbox should run or pause.
import type { Sql } from '#src/control/storage/database.ts'
import type { SavedDisk } from '#src/wire/runner-link.ts'
import type { SandboxRow } from './sandbox.ts'

/** Maximum number of saves that one sweep requests. */
const mostAtOnce = 200

/** Returns the columns to write after a loss of the disk. Undefined if the store has no copy, or only a copy of an older disk. */
export const copyInStore = (row: SandboxRow): Partial<SandboxRow> | undefined => {
  if (row.archive_sha256 === null) return undefined
  if (row.archived_at !== null) return {}
  return row.save_state === 'saved' ? { archived_at: row.saved_at } : undefined
}

/**
 * Requests saves of some stopped sandboxes. Control chooses the archive's name, so a retry writes the same archive. Leaves out
 * sandboxes that are deleted when they stop. Leaves out runners with a store of their own, because that store would be lost with
 * its host.
 */
export const wantSaves = (sql: Sql): Promise<SandboxRow[]> =>
  sql<SandboxRow[]>`
    update sandboxes set save_state = 'wanted', archive_id = gen_random_uuid()::text,
      archive_sha256 = null, archive_bytes = null, archive_stored_bytes = null, archive_base = null
    from (
      select sandboxes.id from sandboxes
        join regions on regions.id = sandboxes.region_id and saves_stopped
        join runners on runners.id = runner_id and shares_store
      where sandboxes.state = 'stopped' and save_state is null and desired_state = 'stopped' and archived_at is null
        and first_started_at is not null and auto_delete_interval <> 0
      limit ${mostAtOnce} for no key update of sandboxes skip locked) unsaved
    where sandboxes.id = unsaved.id returning sandboxes.*`

/** Cancels requested saves in regions in which the operator has switched saving off. */
export const dropSaves = async (sql: Sql): Promise<void> => {
  await sql`
    update sandboxes set save_state = null
    from regions where regions.id = region_id and not saves_stopped and save_state = 'wanted'`
}

/** Returns whether control still requests this save from this runner. */
export const isSaveWanted = async (
  sql: Sql,
  { runnerId, sandboxId, archive }: SavedDisk & { runnerId: string },
): Promise<boolean> => {
  const [row] = await sql`
    select 1 from sandboxes
    where id = ${sandboxId} and runner_id = ${runnerId} and archive_id = ${archive.id} and save_state = 'wanted'`
  return row !== undefined
}

/** Stores that a save is complete. Changes nothing if control no longer requests the save. */
export const writeSaved = async (
  sql: Sql,
  { runnerId, sandboxId, archive, reason }: SavedDisk & { runnerId: string; reason: string },
  now: Date,
): Promise<void> => {
  await sql`
    with saved as (
      update sandboxes set save_state = 'saved', saved_at = ${now}, archive_sha256 = ${archive.sha256},
        archive_bytes = ${archive.bytes}, archive_stored_bytes = ${archive.storedBytes},
        archive_base = ${archive.base ?? null}
      where id = ${sandboxId} and runner_id = ${runnerId} and archive_id = ${archive.id} and save_state = 'wanted'
      returning id, organization_id, state)
    insert into sandbox_events (sandbox_id, organization_id, from_state, to_state, at, by_kind, by_id, reason)
    select id, organization_id, state, state, ${now}, 'runner', ${runnerId}, ${reason} from saved`
}

/** Writes into the timeline that a save has failed and will be tried again. */
export const noteUnsaved = async (
  sql: Sql,
  {
    runnerId,
    sandboxId,
    archiveId,
    reason,
  }: { runnerId: string; sandboxId: string; archiveId: string; reason: string },
  now: Date,
): Promise<void> => {
  await sql`
    insert into sandbox_events (sandbox_id, organization_id, from_state, to_state, at, by_kind, by_id, reason)
    select id, organization_id, state, state, ${now}, 'runner', ${runnerId}, ${reason} from sandboxes
    where id = ${sandboxId} and runner_id = ${runnerId} and archive_id = ${archiveId} and save_state = 'wanted'`
}
