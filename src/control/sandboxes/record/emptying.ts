// Reads which sandboxes of an emptied runner move, which are moving, and which cannot.
import type { Piece, Sql } from '#src/control/storage/database.ts'
import { statesHoldingDisk } from './lifecycle.ts'
import type { SandboxRow } from './sandbox.ts'

/** Maximum number of staying sandboxes in the operator's list. */
const mostShown = 100
/** Maximum number of sandboxes that one sweep tries to move. They are drawn at random, so that none waits for others. */
const mostTried = 20
/** Seconds until a start that a runner refused is tried again. */
const againAfterSeconds = 60

/** Condition: a volume of the sandbox is on the disk of its runner, so that the sandbox cannot leave it. */
const isBound = (sql: Sql): Piece => sql`volumes @> '[{"placed": {"driver": "disk"}}]'::jsonb`

/** Condition: the sandbox is in a state from which it can be archived, and does not move yet. */
const canMove = (sql: Sql, now: Date): Piece => sql`
  state in ('started', 'stopped', 'paused') and desired_state = state and emptying is null and not ${isBound(sql)}
    and (archive_not_before is null or archive_not_before <= ${now})`

/** Lists some sandboxes that can move. Those that do not run come first. */
export const listToMove = (sql: Sql, runnerId: string, now: Date): Promise<SandboxRow[]> =>
  sql<SandboxRow[]>`
    select * from sandboxes where runner_id = ${runnerId} and ${canMove(sql, now)}
    order by state = 'started', random() limit ${mostTried}`

export const countArchiving = async (sql: Sql, runnerId: string): Promise<number> => {
  const [row] = await sql<[{ count: number }]>`
    select count(*)::int as count from sandboxes where runner_id = ${runnerId} and state = 'archiving'`
  return row.count
}

/** Lists some sandboxes that ran before their move and should start again: archived ones, and stopped ones. */
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
 * Ends the move of a sandbox that is archived or is being archived, so that the sandbox does not start by itself.
 * Returns undefined if there is no such move.
 */
export const stayArchived = async (sql: Sql, id: string, now: Date): Promise<SandboxRow | undefined> => {
  const [row] = await sql<SandboxRow[]>`
    update sandboxes set emptying = null, updated_at = ${now}, version = version + 1,
      stopped_at = case when state = 'archived' then ${now} else stopped_at end
    where id = ${id} and emptying is not null and state in ('archiving', 'archived') returning *`
  return row
}

/** Makes control try again the sandboxes of the runner that could not be moved. */
export const forgetRefusals = async (sql: Sql, runnerId: string): Promise<void> => {
  await sql`
    update sandboxes set emptying = null, archive_not_before = null
    where runner_id = ${runnerId} and state in ('started', 'stopped', 'paused')
      and (emptying = 'refused' or archive_not_before is not null)`
}

export type Staying = { sandboxId: string; reason: string }

export type Progress = { running: number; left: number; moving: number; staying: Staying[] }

/** How far a runner is from being empty. `running`: its sandboxes whose processes end with a move. */
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
