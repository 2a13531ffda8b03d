// Changes snapshots when a runner has reported on their image.
import type { Sql, Transaction } from '#src/control/storage/database.ts'
import { moveSnapshots } from './write.ts'

type Sizes = { sizeGiB: number | null; leastGiB: number | null }

/**
 * Sets a snapshot to `error` if its image is too large: for the organization's limit, or for the snapshot's own disk size. The size
 * of the image is known only after the build or pull. Returns whether any snapshot was set to `error`.
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

/** Size and config of the image. If a field is null, the snapshot keeps its present value of that field. */
type ImageFacts = { sizeGiB: number | null; user: string | null; entrypoint: string[] | null }

/**
 * Activates the snapshots of the image. A snapshot that has an entrypoint of its own does not get the image's
 * entrypoint.
 */
export const activateSnapshots = async (transaction: Transaction, image: string, found: ImageFacts, now: Date) => {
  await moveSnapshots(transaction, 'arrive', transaction`image = ${image}`, { now, image: found })
}

/**
 * Marks the snapshots of an image as failed, because the image cannot be made or no runner has it any more. Users can activate the
 * snapshots again.
 */
export const failSnapshots = async (transaction: Transaction, image: string, reason: string, now: Date) => {
  await moveSnapshots(transaction, 'fail', transaction`image = ${image}`, { now, reason })
}

/** Applies a report of progress to the snapshots of an image, so that these snapshots are not treated as stuck. */
export const noteProgress = async (sql: Sql, image: string, now: Date): Promise<void> => {
  await moveSnapshots(sql, 'progress', sql`image = ${image}`, { now })
}
