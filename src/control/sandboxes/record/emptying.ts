// Reads which sandboxes of an emptied runner move, which are moving, and which cannot.
import type { Piece, Sql } from '#src/control/storage/database.ts'
import { statesHoldingDisk } from './lifecycle.ts'
import type { SandboxRow } from './sandbox.ts'

/** Maximum number of sandboxes that one query lists. */
const mostListed = 100
/** Seconds until a restore that a runner refused is tried again. */
const againAfterSeconds = 60

/** Condition: a volume of the sandbox is on the disk of its runner, so that the sandbox cannot leave it. */
const isBound = (sql: Sql): Piece => sql`volumes @> '[{"placed": {"driver": "disk"}}]'::jsonb`

/** Condition: the sandbox rests in a state from which it can be archived, and is not moved yet. */
const canMove = (sql: Sql, now: Date): Piece => sql`
  state in ('started', 'stopped', 'paused') and desired_state = state and emptying is null and not ${isBound(sql)}
    and (archive_not_before is null or archive_not_before <= ${now})`

/** Lists sandboxes that move next, those first that are not running. */
export const listToMove = (sql: Sql, runnerId: string, now: Date): Promise<SandboxRow[]> =>
  sql<SandboxRow[]>`
    select * from sandboxes where runner_id = ${runnerId} and ${canMove(sql, now)}
    order by state = 'started', id limit ${mostListed}`

export const countArchiving = async (sql: Sql, runnerId: string): Promise<number> => {
  const [row] = await sql<[{ count: number }]>`
    select count(*)::int as count from sandboxes where runner_id = ${runnerId} and state = 'archiving'`
  return row.count
}

/** Lists sandboxes that ran before their move, and rest now: in the store, or stopped because it refused them. */
export const listEmptying = (sql: Sql, now: Date): Promise<SandboxRow[]> => {
  const before = new Date(now.getTime() - againAfterSeconds * 1000)
  return sql<SandboxRow[]>`
    select * from sandboxes
    where emptying is not null and desired_state <> 'destroyed'
      and ((emptying = 'restart' and state in ('archived', 'stopped'))
        or (emptying = 'restarting' and state = 'archived' and state_changed_at < ${before}))
    order by state_changed_at limit ${mostListed}`
}

/** Lets sandboxes of the runner that could not be moved be tried again. */
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
      order by id limit ${mostListed}`,
  ])
  return { ...counts, staying }
}
