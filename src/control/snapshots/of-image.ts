// What becomes of the snapshots of an image when a runner has said how it is with that image.
import type { Sql, Transaction } from '#src/control/storage/database.ts'
import { statesInMaking } from '../images/making.ts'

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
  const refused = await transaction`
    update snapshots set state = 'error', size = coalesce(${sizeGiB}, size), updated_at = ${now},
      error_reason = case when ${sizeGiB}::float8 > max_snapshot_size
        then 'It has ' || ${sizeGiB}::float8 || ' GiB, more than the ' || max_snapshot_size || ' GiB that a snapshot may have.'
        else 'Its sandboxes need a disk of at least ' || ceil(${leastGiB}::float8 * 1000) / 1000 || ' GiB, and it gives them '
          || disk_gib || ' GiB.' end
    from organizations
    where organizations.id = organization_id and image = ${image}
      and (${sizeGiB}::float8 > max_snapshot_size or ${leastGiB}::float8 > disk_gib)
      and state in ${transaction(statesInMaking)}
    returning snapshots.id`
  return refused.length > 0
}

/** What the image says; null where a snapshot keeps what it has. */
type Found = { sizeGiB: number | null; user: string | null; entrypoint: string[] | null }

/** They may be used from now on. What they say for themselves counts more than what the image says. */
export const activateSnapshots = async (
  transaction: Transaction,
  image: string,
  { sizeGiB, user, entrypoint }: Found,
  now: Date,
): Promise<void> => {
  await transaction`
    update snapshots set state = 'active', error_reason = null, size = coalesce(${sizeGiB}, size), updated_at = ${now},
      os_user = coalesce(${user}, os_user), entrypoint = coalesce(entrypoint, ${entrypoint})
    where image = ${image} and state in ${transaction(statesInMaking)}`
}

/** The image cannot be made or brought, or was lost: they are unusable until their owner activates them again. */
export const failSnapshots = async (transaction: Transaction, image: string, reason: string, now: Date) => {
  await transaction`
    update snapshots set state = case when state = 'building' then 'build_failed' else 'error' end,
      error_reason = ${reason}, updated_at = ${now}
    where image = ${image} and state in ${transaction([...statesInMaking, 'active'])}`
}

/** Their image has come further, which also shows that they are not stuck. */
export const noteProgress = async (sql: Sql, image: string, now: Date): Promise<void> => {
  await sql`
    update snapshots set state = case when state = 'pending' then 'pulling' else state end, updated_at = ${now}
    where image = ${image} and state in ${sql(statesInMaking)}`
}
