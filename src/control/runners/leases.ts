// A runner without a heartbeat for `leaseSeconds` is silent. Such a runner gets no new sandboxes, and callers see the last
// reported states.

import type { Piece, Sql } from '#src/control/storage/database.ts'
import type { RunningParts } from '../running.ts'

/** Returns a time. A runner is silent if its last heartbeat is older than this time. */
export const silentBefore = ({ clock, options }: Pick<RunningParts, 'clock' | 'options'>): Date =>
  new Date(clock.now().getTime() - options.leaseSeconds * 1000)

/** Seconds after which a silent runner is not expected to come back. */
const backWithinSeconds = 24 * 3600

/** SQL condition: all runners of the region are silent, but at least one of them had a heartbeat within a day and may come back. */
export const isRegionAway = (sql: Sql, regionId: Piece, parts: Pick<RunningParts, 'clock' | 'options'>): Piece => {
  const longGone = new Date(parts.clock.now().getTime() - backWithinSeconds * 1000)
  return sql`
    (exists (select from runners where region_id = ${regionId} and state <> 'decommissioned'
        and last_heartbeat_at between ${longGone} and ${silentBefore(parts)})
      and not exists (select from runners where region_id = ${regionId} and last_heartbeat_at >= ${silentBefore(parts)}))`
}
