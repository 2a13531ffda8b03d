// Changes snapshots when a runner has listed its images, or is out of service for good.
import type { Database, Sql, Transaction } from '#src/control/storage/database.ts'
import { moveSnapshots } from './write.ts'

const isOnSomeRunner = (sql: Sql) => sql`
  exists (select from runners where snapshots.image = any(runners.images) and runners.state <> 'decommissioned')`

/**
 * Makes the state of snapshots agree with the runners' images: active if some runner has the image, else pulling.
 * If the config of an image is not known yet, its runner still has to report it, and that report activates the snapshot.
 */
export const reconcileSnapshots = async ({ sql }: Database, now: Date): Promise<void> => {
  const isReported = sql`
    not exists (select from images where images.name = snapshots.image and config is null and base is null)`
  await moveSnapshots(sql, 'find', sql`${isOnSomeRunner(sql)} and ${isReported}`, { now })
  // A general snapshot of a definition has no image of its own: each organization builds one (desktop.ts).
  const hasImage = sql`not (general and dockerfile is not null)`
  await moveSnapshots(sql, 'lose', sql`${hasImage} and not ${isOnSomeRunner(sql)}`, { now })
}

/** Marks the snapshots as failed whose image only this runner kept. */
export const loseSnapshotsOf = async (transaction: Transaction, runnerId: string, now: Date): Promise<void> => {
  const which = transaction`image in (select name from images where runner_id = ${runnerId})`
  const reason = 'The runner that kept it was taken out of service.'
  await moveSnapshots(transaction, 'lose-runner', which, { now, reason })
}
