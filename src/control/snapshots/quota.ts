// The limits of an organization's snapshots: how many there may be, how many may be in the making, and their size.
import type { Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import { statesInMaking } from './lifecycle.ts'

type Counted = { most: number; most_in_making: number; max_size: number; count: number; in_making: number }

/**
 * Throws if the organization has too many snapshots, or too many in the making. Call this function after the insert of a new
 * snapshot. Returns the maximum size of a snapshot, in GiB.
 */
export const checkSnapshotQuota = async (transaction: Transaction, organizationId: string): Promise<number> => {
  // Both statements are sent at once, but the second runs after the first has the lock. So the count includes the snapshots that
  // earlier holders of the lock inserted.
  const [, [row]] = await Promise.all([
    transaction`select pg_advisory_xact_lock(hashtextextended(${`snapshots ${organizationId}`}, 0))`,
    transaction<Counted[]>`
      select snapshot_quota as most, max_concurrent_snapshot_processing as most_in_making, max_snapshot_size as max_size,
        count(snapshots.id) as count,
        count(snapshots.id) filter (where state in ${transaction(statesInMaking)}) as in_making
      from organizations left join snapshots on organization_id = organizations.id
      where organizations.id = ${organizationId} group by organizations.id`,
  ])
  if (row === undefined) throw new Problem('forbidden', 'This organization no longer exists.')
  if (row.count > row.most) {
    throw new Problem(
      'quota_exceeded',
      `Snapshot quota exceeded: the snapshot quota of ${row.most} is exceeded: ${row.count - 1} are used, and 1 is asked for.`,
    )
  }
  if (row.most_in_making > 0 && row.in_making > row.most_in_making) {
    throw new Problem(
      'quota_exceeded',
      `The quota of ${row.most_in_making} snapshots in the making is exceeded: ${row.in_making - 1} are being made, and 1 is asked for.`,
    )
  }
  return row.max_size
}
