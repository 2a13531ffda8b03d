// Decides in which regions a silent runner may be declared lost. No runner is declared lost while most runners of its region are
// silent, or soon after a time in which no control process could receive heartbeats: then the runner is probably not at fault.
import type { Sql } from '#src/control/storage/database.ts'
import type { RunningParts } from '../running.ts'
import { silentBefore } from './leases.ts'

/**
 * Returns the regions that control hears: at least half of the region's runners send heartbeats now. Does not count lost runners,
 * or runners that never connected. Stores for each region since when control hears the region: soon after that, no runner is
 * declared lost. After a gap longer than `leaseSeconds`, this time starts anew.
 */
export const hearRegions = async (
  sql: Sql,
  parts: Pick<RunningParts, 'clock' | 'options'>,
  now: Date,
): Promise<string[]> => {
  const before = silentBefore(parts)
  const rows = await sql<{ id: string }[]>`
    insert into region_hearing as hearing (region_id, since, until)
    select region_id, ${now}, ${now} from runners
    where state <> 'decommissioned' and lost_at is null and last_heartbeat_at is not null
    group by region_id having count(*) filter (where last_heartbeat_at < ${before}) * 2 <= count(*)
    on conflict (region_id) do update set until = greatest(hearing.until, excluded.until),
      since = case when hearing.until < ${before} then excluded.since else hearing.since end
    returning region_id as id`
  return rows.map(({ id }) => id)
}

/**
 * Marks runners that were silent for `minutes` as lost.
 * Skips a region until at least half of its runners have sent heartbeats for `minutes` (`hearRegions`).
 */
export const markLost = async (
  sql: Sql,
  { regionIds, minutes, now }: { regionIds: readonly string[]; minutes: number; now: Date },
): Promise<string[]> => {
  if (minutes === 0 || regionIds.length === 0) return []
  const before = new Date(now.getTime() - minutes * 60_000)
  const rows = await sql<{ id: string }[]>`
    update runners set lost_at = ${now}, updated_at = ${now} from region_hearing
    where region_hearing.region_id = runners.region_id and runners.region_id in ${sql(regionIds as string[])}
      and since < ${before} and is_silent and lost_at is null and last_heartbeat_at < ${before}
      and state <> 'decommissioned'
    returning id`
  return rows.map(({ id }) => id)
}

/** Marks a silent runner as lost, because the operator has given it up. Returns false if the runner is not silent. */
export const declareLost = async (sql: Sql, id: string, before: Date, now: Date): Promise<boolean> => {
  const { count } = await sql`
    update runners set lost_at = coalesce(lost_at, ${now}), is_silent = true, updated_at = ${now},
      state = case when state = 'ready' then 'unresponsive' else state end
    where id = ${id} and state <> 'decommissioned' and last_heartbeat_at < ${before}`
  return count > 0
}

/** Lists lost runners. Decommissioned runners are left out. */
export const listLost = async (sql: Sql): Promise<{ id: string; lastHeartbeatAt: Date }[]> =>
  sql`select id, last_heartbeat_at as "lastHeartbeatAt" from runners where lost_at is not null and state <> 'decommissioned'`
