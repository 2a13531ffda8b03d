// A runner holds a lease by its heartbeats. One that misses it gets nothing new; what it has keeps its last known state.

import { endOnRunner } from '#src/control/sandboxes/upkeep/runner-gone.ts'
import type { Piece, Sql } from '#src/control/storage/database.ts'
import type { SandboxParts } from '../running.ts'
import { listGoneWithSandboxes, markUnresponsive } from './store.ts'

/** Who was last heard before is silent. */
export const silentBefore = ({ clock, options }: Pick<SandboxParts, 'clock' | 'options'>): Date =>
  new Date(clock.now().getTime() - options.leaseSeconds * 1000)

/** Who is away for longer is not waited for. */
const backWithinSeconds = 24 * 3600

/** A condition: nobody of the region with the id of this column is heard, and somebody was within a day, so may well be back. */
export const isRegionAway = (sql: Sql, regionId: Piece, parts: Pick<SandboxParts, 'clock' | 'options'>): Piece => {
  const longGone = new Date(parts.clock.now().getTime() - backWithinSeconds * 1000)
  return sql`
    (exists (select from runners where region_id = ${regionId} and state <> 'decommissioned'
        and last_heartbeat_at between ${longGone} and ${silentBefore(parts)})
      and not exists (select from runners where region_id = ${regionId} and last_heartbeat_at >= ${silentBefore(parts)}))`
}

export const sweepLeases = async (parts: SandboxParts): Promise<void> => {
  const { database, clock, log, options } = parts
  const now = clock.now()
  for (const runnerId of await markUnresponsive(database.sql, silentBefore(parts), now)) {
    log.warn({ runnerId, leaseSeconds: options.leaseSeconds }, 'a runner has missed its heartbeats')
  }
  // What was changing in the moment when its runner was taken out of service.
  for (const runnerId of await listGoneWithSandboxes(database.sql)) await endOnRunner(parts, runnerId)
}
