// What becomes of snapshots when a runner has said which images it has, or is gone for good.
import type { Database, Sql, Transaction } from '#src/control/storage/database.ts'
import { moveSnapshots } from './write.ts'

const isOnSomeRunner = (sql: Sql) => sql`
  exists (select from runners where snapshots.image = any(runners.images) and runners.state <> 'decommissioned')`

/**
 * A snapshot can be used where some runner has its image; the two are brought to agree, whichever way. What an image says
 * of itself, its runner has yet to report where control was away when it was brought: then that makes the snapshot active.
 */
export const reconcileSnapshots = async ({ sql }: Database, now: Date): Promise<void> => {
  const isReported = sql`
    not exists (select from images where images.name = snapshots.image and config is null and base is null)`
  await moveSnapshots(sql, 'find', sql`${isOnSomeRunner(sql)} and ${isReported}`, { now })
  await moveSnapshots(sql, 'lose', sql`not ${isOnSomeRunner(sql)}`, { now })
}

/** Snapshots that only this runner had are lost with it. */
export const loseSnapshotsOf = async (transaction: Transaction, runnerId: string, now: Date): Promise<void> => {
  const which = transaction`image in (select name from images where runner_id = ${runnerId})`
  const reason = 'The runner that kept it was taken out of service.'
  await moveSnapshots(transaction, 'lose-runner', which, { now, reason })
}
