// What becomes of the snapshots of an image when a runner has said how it is with that image.
import type { Sql, Transaction } from '#src/control/storage/database.ts'
import { moveSnapshots } from './write.ts'

type Sizes = { sizeGiB: number | null; leastGiB: number | null }

/**
 * What it needs is known only now: room of its organization, and of the disks of its sandboxes, which begin as it is. Answers
 * whether any was refused.
 */
export const refuseWhatCannotBe = async (
  transaction: Transaction,
  image: string,
  { sizeGiB, leastGiB }: Sizes,
  now: Date,
): Promise<boolean> => {
  const tooLarge = await transaction<{ id: string; reason: string }[]>`
    select snapshots.id,
      case when ${sizeGiB}::float8 > max_snapshot_size
        then 'It has ' || ${sizeGiB}::float8 || ' GiB, more than the ' || max_snapshot_size || ' GiB that a snapshot may have.'
        else 'Its sandboxes need a disk of at least ' || ceil(${leastGiB}::float8 * 1000) / 1000 || ' GiB, and it gives them '
          || disk_gib || ' GiB.' end as reason
    from snapshots join organizations on organizations.id = organization_id
    where image = ${image} and (${sizeGiB}::float8 > max_snapshot_size or ${leastGiB}::float8 > disk_gib)`
  let isAnyRefused = false
  for (const { id, reason } of tooLarge) {
    const change = { now, reason, image: { sizeGiB } }
    const moved = await moveSnapshots(transaction, 'refuse', transaction`id = ${id}`, change)
    isAnyRefused ||= moved.length > 0
  }
  return isAnyRefused
}

/** What the image says; null where a snapshot keeps what it has. */
type Found = { sizeGiB: number | null; user: string | null; entrypoint: string[] | null }

/** They may be used from now on. What they say for themselves counts more than what the image says. */
export const activateSnapshots = async (transaction: Transaction, image: string, found: Found, now: Date) => {
  await moveSnapshots(transaction, 'arrive', transaction`image = ${image}`, { now, image: found })
}

/** The image cannot be made or brought, or was lost: they are unusable until their owner activates them again. */
export const failSnapshots = async (transaction: Transaction, image: string, reason: string, now: Date) => {
  await moveSnapshots(transaction, 'fail', transaction`image = ${image}`, { now, reason })
}

/** Their image has come further, which also shows that they are not stuck. */
export const noteProgress = async (sql: Sql, image: string, now: Date): Promise<void> => {
  await moveSnapshots(sql, 'progress', sql`image = ${image}`, { now })
}
