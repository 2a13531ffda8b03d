// Applies the time limits of snapshots: fails snapshots that are being made without progress, and deactivates snapshots that were
// not used for long.

import { dropOldBuildLogs } from '#src/control/images/build-logs.ts'
import { dropUnusedBuilds } from '#src/control/images/builds.ts'
import { dropUnusedBases } from '#src/control/images/image-store.ts'
import { pushImage } from '#src/control/images/images.ts'
import { isRegionAway } from '#src/control/runners/leases.ts'
import type { RunningParts } from '../running.ts'
import { statesInMaking } from './lifecycle.ts'
import { moveSnapshots } from './write.ts'

/** Seconds without progress after which a snapshot that is being made fails. */
const silentForSeconds = 3600

/**
 * Marks snapshots without progress as failed, and deactivates snapshots unused for longer than their organization's
 * timeout.
 */
export const sweepSnapshots = async (parts: RunningParts): Promise<void> => {
  const { database, clock } = parts
  const now = clock.now()
  const { sql } = database
  const silentSince = new Date(now.getTime() - silentForSeconds * 1000)
  // Silent runners cannot report progress. If all runners of a region are silent, the time limit of the region's snapshots begins
  // again.
  await sql`
    update snapshots set updated_at = ${now} from images
    where images.name = snapshots.image and snapshots.state in ${sql(statesInMaking)} and snapshots.updated_at < ${silentSince}
      and ${isRegionAway(sql, sql`images.region_id`, parts)}`
  await moveSnapshots(sql, 'give-up', sql`updated_at < ${silentSince} and organization_id is not null`, {
    now,
    reason: 'No runner has finished it within an hour of its last progress.',
  })
  const isUnused = sql`
    exists (select from organizations
      where organizations.id = snapshots.organization_id and snapshot_deactivation_timeout_minutes > 0
        and greatest(snapshots.last_used_at, snapshots.updated_at)
          < ${now}::timestamptz - snapshot_deactivation_timeout_minutes * interval '1 minute')`
  await moveSnapshots(sql, 'idle', isUnused, { now })
  await dropOldBuildLogs(sql, now)
  for (const image of await dropUnusedBuilds(sql, now)) await pushImage(parts, image)
  await dropUnusedBases(sql, now)
}
