// A runner holds a lease by its heartbeats. One that misses it gets nothing new; what it has keeps its last known state.

import type { Piece, Sql } from '#src/control/storage/database.ts'
import type { RunningParts } from '../running.ts'

/** Who was last heard before is silent. */
export const silentBefore = ({ clock, options }: Pick<RunningParts, 'clock' | 'options'>): Date =>
  new Date(clock.now().getTime() - options.leaseSeconds * 1000)

/** Who is away for longer is not waited for. */
const backWithinSeconds = 24 * 3600

/** A condition: nobody of the region with the id of this column is heard, and somebody was within a day, so may well be back. */
export const isRegionAway = (sql: Sql, regionId: Piece, parts: Pick<RunningParts, 'clock' | 'options'>): Piece => {
  const longGone = new Date(parts.clock.now().getTime() - backWithinSeconds * 1000)
  return sql`
    (exists (select from runners where region_id = ${regionId} and state <> 'decommissioned'
        and last_heartbeat_at between ${longGone} and ${silentBefore(parts)})
      and not exists (select from runners where region_id = ${regionId} and last_heartbeat_at >= ${silentBefore(parts)}))`
}
