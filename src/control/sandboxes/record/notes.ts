// What is written on the row of a sandbox beside its state: how far something has come, what its runner has said, what its
// runner is to hear.
import { noSandbox } from '#src/problems.ts'
import type { Piece, Sql } from '../../storage/database.ts'
import { statesAwaitingImage } from './lifecycle.ts'
import type { NetworkColumns } from './network-policy.ts'
import type { SandboxRow } from './sandbox.ts'

type Known = Pick<SandboxRow, 'id' | 'version'>
type Coming = { progress: NonNullable<SandboxRow['progress']>; stuckAt: Date }

/** Writes how far a sandbox's verb has come, and until when it does not count as stuck. */
export const writeProgress = async (sql: Sql, { id, version }: Known, { progress, stuckAt }: Coming): Promise<void> => {
  await sql`
    update sandboxes set progress = ${sql.json(progress)}, stuck_at = ${stuckAt}
    where id = ${id} and version = ${version}`
}

/** Writes how far an image has come, on each sandbox that waits for it. */
export const writeImageProgress = async (sql: Sql, image: string, { progress, stuckAt }: Coming): Promise<void> => {
  await sql`
    update sandboxes set progress = ${sql.json(progress)}, stuck_at = ${stuckAt}
    where image = ${image} and state in ${sql(statesAwaitingImage)}`
}

/** Writes when a sandbox counts as stuck, if it comes no further until then. */
export const writeStuckAt = async (sql: Sql, { id, version }: Known, stuckAt: Date): Promise<void> => {
  await sql`update sandboxes set stuck_at = ${stuckAt} where id = ${id} and version = ${version}`
}

/** Notes that the runner has nothing of a sandbox left. */
export const writeGone = async (sql: Sql, id: string, now: Date): Promise<void> => {
  await sql`update sandboxes set gone_at = ${now} where id = ${id} and gone_at is null`
}

/** The row of a sandbox that was destroyed has been kept long enough. */
export const forgetDestroyed = async (sql: Sql, id: string): Promise<void> => {
  await sql`delete from sandboxes where id = ${id} and state = 'destroyed'`
}

/** Sandboxes that need no runner, or can have another, are no longer on one that was taken out of service. */
export const leaveRunner = async (sql: Sql, runnerId: string, now: Date): Promise<void> => {
  // What is to go and has an archive is another runner's to remove, where there is one.
  await sql`
    update sandboxes set runner_id = other.id
    from runners gone cross join lateral (
      select id from runners where region_id = gone.region_id and id <> gone.id and state <> 'decommissioned'
      order by state = 'ready' desc, id limit 1) other
    where gone.id = ${runnerId} and sandboxes.runner_id = gone.id and archive_id is not null
      and (sandboxes.state = 'destroying' or (sandboxes.state = 'destroyed' and gone_at is null))`
  await sql`update sandboxes set gone_at = ${now} where runner_id = ${runnerId} and state = 'destroyed' and gone_at is null`
  await sql`update sandboxes set runner_id = null where runner_id = ${runnerId} and state in ('destroyed', 'archived')`
}

/**
 * A statement for the first word of a runner that was not heard since `silentBefore`: what runs there has been idle for so much
 * less, as nobody could reach it meanwhile, or nobody could write that they did.
 */
export const forgiveSilence = (
  sql: Sql,
  { runnerId, silentBefore, now }: { runnerId: string; silentBefore: Date; now: Date },
): Piece => sql`
  update sandboxes set last_activity_at = least(${now}, last_activity_at + (${now}::timestamptz - last_heartbeat_at))
  from runners
  where runners.id = ${runnerId} and last_heartbeat_at < ${silentBefore}
    and sandboxes.runner_id = runners.id and sandboxes.state = 'started'`

/** A new generation, except for what waits to be recovered or is to be destroyed: that gets one when it is. */
export const writeNetwork = async (
  sql: Sql,
  id: string,
  change: Partial<NetworkColumns>,
  now: Date,
): Promise<SandboxRow> => {
  const [row] = await sql<SandboxRow[]>`
    with told as (
      select id, case when state <> 'error' and desired_state <> 'destroyed' then 1 else 0 end as anew
      from sandboxes where id = ${id} for update
    )
    update sandboxes set ${sql(change)}, updated_at = ${now}, generation = generation + anew, version = version + anew
    from told where sandboxes.id = told.id and state <> 'destroyed' returning sandboxes.*`
  if (!row) throw noSandbox(id)
  return row
}
