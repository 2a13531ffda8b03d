// Queries about a runner that is being emptied: which of its sandboxes can move, are moving, or cannot move.
import type { Piece, Sql } from '#src/control/storage/database.ts'
import { statesHoldingDisk } from './lifecycle.ts'
import type { SandboxRow } from './sandbox.ts'

/** Maximum number of sandboxes in the operator's list of sandboxes that cannot leave a runner, with the reasons. */
const mostShown = 100
/**
 * Maximum number of sandboxes that one sweep tries to move. They are chosen at random, so that a sandbox for which no other runner
 * has room does not block the rest.
 */
const mostTried = 20
/** Seconds after which control tries again to start a sandbox that it moved and that did not start. */
const againAfterSeconds = 60

/** SQL condition: the sandbox must stay on its runner, because one of its volumes is on the runner's own disk. */
const isBound = (sql: Sql): Piece => sql`volumes @> '[{"placed": {"driver": "disk"}}]'::jsonb`

/** SQL condition: the sandbox can be archived in its present state, and is not leaving its runner yet. */
const canMove = (sql: Sql, now: Date): Piece => sql`
  state in ('started', 'stopped', 'paused') and desired_state = state and emptying is null and not ${isBound(sql)}
    and (archive_not_before is null or archive_not_before <= ${now})`

/** Lists some sandboxes that can move away from the runner `runnerId`. Stopped and paused sandboxes come first. */
export const listToMove = (sql: Sql, runnerId: string, now: Date): Promise<SandboxRow[]> =>
  sql<SandboxRow[]>`
    select * from sandboxes where runner_id = ${runnerId} and ${canMove(sql, now)}
    order by state = 'started', random() limit ${mostTried}`

export const countArchiving = async (sql: Sql, runnerId: string): Promise<number> => {
  const [row] = await sql<[{ count: number }]>`
    select count(*)::int as count from sandboxes where runner_id = ${runnerId} and state = 'archiving'`
  return row.count
}

/**
 * Lists some sandboxes that ran when their runner was emptied. Control must start them again. Each is `archived`, or `stopped` if
 * it could not be archived.
 */
export const listEmptying = (sql: Sql, now: Date): Promise<SandboxRow[]> => {
  const before = new Date(now.getTime() - againAfterSeconds * 1000)
  return sql<SandboxRow[]>`
    select * from sandboxes
    where emptying is not null and desired_state <> 'destroyed'
      and ((emptying = 'restart' and state in ('archived', 'stopped'))
        or (emptying = 'restarting' and state in ('archived', 'stopped') and state_changed_at < ${before}))
    order by random() limit ${mostTried}`
}

/**
 * Called when a caller archives a sandbox. If control archives the sandbox only to start it elsewhere, cancels that start and
 * returns the row. Otherwise returns undefined.
 */
export const stayArchived = async (sql: Sql, id: string, now: Date): Promise<SandboxRow | undefined> => {
  const [row] = await sql<SandboxRow[]>`
    update sandboxes set emptying = null, updated_at = ${now}, version = version + 1,
      stopped_at = case when state = 'archived' then ${now} else stopped_at end
    where id = ${id} and emptying is not null and state in ('archiving', 'archived') returning *`
  return row
}

/** Lets control try again to move those sandboxes of the runner that could not be archived before. */
export const forgetRefusals = async (sql: Sql, runnerId: string): Promise<void> => {
  await sql`
    update sandboxes set emptying = null, archive_not_before = null
    where runner_id = ${runnerId} and state in ('started', 'stopped', 'paused')
      and (emptying = 'refused' or archive_not_before is not null)`
}

export type Staying = { sandboxId: string; reason: string }

export type Progress = { running: number; left: number; moving: number; staying: Staying[] }

/**
 * Returns how far a runner is from being empty. `running`: number of sandboxes that must be stopped before they can
 * move.
 */
export const readProgress = async (sql: Sql, runnerId: string): Promise<Progress> => {
  const [[counts], staying] = await Promise.all([
    sql<[Omit<Progress, 'staying'>]>`
      select count(*) filter (where state in ('started', 'paused') and warm_pool_id is null)::int as running,
        count(*) filter (where state in ${sql(statesHoldingDisk)} or (state = 'destroyed' and gone_at is null))::int as left,
        count(*) filter (where state = 'archiving')::int as moving
      from sandboxes where runner_id = ${runnerId}`,
    sql<Staying[]>`
      select id as "sandboxId", case
          when ${isBound(sql)} then 'A volume that it mounts is on the disk of this host.'
          when state = 'error' then 'It is in error. Recover it or delete it.'
          else coalesce(error_reason, 'Its host refused to archive it.') end as reason
      from sandboxes
      where runner_id = ${runnerId} and desired_state <> 'destroyed' and state in ('started', 'stopped', 'paused', 'error')
        and (${isBound(sql)} or state = 'error' or emptying = 'refused' or archive_not_before is not null)
      order by id limit ${mostShown}`,
  ])
  return { ...counts, staying }
}
