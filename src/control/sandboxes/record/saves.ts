// Saves: copies of stopped disks in the archive store, in regions with `savesStopped` (docs/adr/0043-saved-at-stop.md). A save
// is an archive whose disk is still on its host, so it has the columns of an archive. `save_state` says whether the save
// is as new as the disk; the trigger `forget_save` clears it when the sandbox is to run.
import type { Sql } from '#src/control/storage/database.ts'
import type { SavedDisk } from '#src/wire/runner-link.ts'
import type { SandboxRow } from './sandbox.ts'

/** Maximum number of sandboxes that one sweep asks for. */
const mostAtOnce = 200

/**
 * The columns with which the copy in the store becomes the sandbox's disk, or undefined if the store has no copy that is
 * as new as the disk.
 */
export const copyInStore = (row: SandboxRow): Partial<SandboxRow> | undefined => {
  if (row.archive_sha256 === null) return undefined
  if (row.archived_at !== null) return {}
  return row.save_state === 'saved' ? { archived_at: row.saved_at } : undefined
}

/**
 * Asks for a save of some stopped sandboxes that have none. Control chooses the name of the archive, so that a repeated
 * attempt writes the same one. A sandbox that is deleted when it stops is not saved, and neither is one whose runner has
 * its store on its own host only: the save would be lost with the host.
 */
export const wantSaves = (sql: Sql): Promise<SandboxRow[]> =>
  sql<SandboxRow[]>`
    update sandboxes set save_state = 'wanted', archive_id = gen_random_uuid()::text,
      archive_sha256 = null, archive_bytes = null, archive_stored_bytes = null
    from (
      select sandboxes.id from sandboxes
        join regions on regions.id = sandboxes.region_id and saves_stopped
        join runners on runners.id = runner_id and shares_store
      where sandboxes.state = 'stopped' and save_state is null and desired_state = 'stopped' and archived_at is null
        and first_started_at is not null and auto_delete_interval <> 0
      limit ${mostAtOnce} for no key update of sandboxes skip locked) unsaved
    where sandboxes.id = unsaved.id returning sandboxes.*`

/** Cancels wanted saves in regions that do not save any more. */
export const dropSaves = async (sql: Sql): Promise<void> => {
  await sql`
    update sandboxes set save_state = null
    from regions where regions.id = region_id and not saves_stopped and save_state = 'wanted'`
}

/**
 * Writes that a save is complete, with its event. Changes nothing if the save is not wanted any more, for example because
 * the sandbox is to run.
 */
export const writeSaved = async (
  sql: Sql,
  { runnerId, sandboxId, archive, reason }: SavedDisk & { runnerId: string; reason: string },
  now: Date,
): Promise<void> => {
  await sql`
    with saved as (
      update sandboxes set save_state = 'saved', saved_at = ${now}, archive_sha256 = ${archive.sha256},
        archive_bytes = ${archive.bytes}, archive_stored_bytes = ${archive.storedBytes}
      where id = ${sandboxId} and runner_id = ${runnerId} and archive_id = ${archive.id} and save_state = 'wanted'
      returning id, organization_id, state)
    insert into sandbox_events (sandbox_id, organization_id, from_state, to_state, at, by_kind, by_id, reason)
    select id, organization_id, state, state, ${now}, 'runner', ${runnerId}, ${reason} from saved`
}

/** Writes into the timeline that a save has failed and is tried again. */
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
