// Updates the states of snapshots after a runner has listed its images, or is out of service for good.
import type { Database, Sql, Transaction } from '#src/control/storage/database.ts'
import { moveSnapshots } from './write.ts'

const isOnSomeRunner = (sql: Sql) => sql`
  exists (select from runners where snapshots.image = any(runners.images) and runners.state <> 'decommissioned')`

/**
 * A waiting snapshot becomes `active` if some runner has its image. An active snapshot becomes `pulling` if no runner has its
 * image. If the image's config is unknown, the snapshot waits until a runner reports the config.
 */
export const reconcileSnapshots = async ({ sql }: Database, now: Date): Promise<void> => {
  const isReported = sql`
    not exists (select from images where images.name = snapshots.image and config is null and base is null)`
  await moveSnapshots(sql, 'find', sql`${isOnSomeRunner(sql)} and ${isReported}`, { now })
  // A general snapshot with a Dockerfile needs no image on a runner: each organization builds its own image (desktop.ts).
  const hasImage = sql`not (general and dockerfile is not null)`
  await moveSnapshots(sql, 'lose', sql`${hasImage} and not ${isOnSomeRunner(sql)}`, { now })
}

/** Marks snapshots as failed if only this runner had their image. */
export const loseSnapshotsOf = async (transaction: Transaction, runnerId: string, now: Date): Promise<void> => {
  const which = transaction`image in (select name from images where runner_id = ${runnerId})`
  const reason = 'The runner that kept it was taken out of service.'
  await moveSnapshots(transaction, 'lose-runner', which, { now, reason })
}
