// Every write of a snapshot's state, by the table of `lifecycle.ts`.
import { Problem } from '#src/problems.ts'
import { isDuplicate, type Piece, type Sql, type Transaction } from '../storage/database.ts'
import { deletableStates, type FirstEvent, firstStateOn, type MovingEvent, movesOn } from './lifecycle.ts'
import { readSnapshot, type Snapshot, type SnapshotRow } from './store.ts'

type NewSnapshot = Pick<
  Snapshot,
  'name' | 'image' | 'imageName' | 'osUser' | 'entrypoint' | 'cpu' | 'memoryGiB' | 'diskGiB'
> & { organizationId: string; sourceSandboxId?: string; dockerfile?: string }

/** Writes a new one of an organization. A name that is taken there is a 409, decided by the unique index. */
export const insertSnapshot = async (
  transaction: Transaction,
  on: Exclude<FirstEvent, 'provide'>,
  snapshot: NewSnapshot,
  now: Date,
): Promise<Snapshot> => {
  const { organizationId, name, image, imageName, osUser, entrypoint, cpu, memoryGiB, diskGiB } = snapshot
  try {
    // In a part of its own: after a failure the caller's transaction could do nothing more.
    const [row] = await transaction.savepoint(
      (part) => part<SnapshotRow[]>`
        insert into snapshots (organization_id, name, state, image, image_name, os_user, entrypoint, cpu, memory_gib,
          disk_gib, source_sandbox_id, dockerfile, created_at, updated_at)
        values (${organizationId}, ${name}, ${firstStateOn(on)}, ${image}, ${imageName}, ${osUser}, ${entrypoint}, ${cpu},
          ${memoryGiB}, ${diskGiB}, ${snapshot.sourceSandboxId ?? null}, ${snapshot.dockerfile ?? null}, ${now}, ${now})
        returning *`,
    )
    return readSnapshot(row as SnapshotRow)
  } catch (error) {
    if (!isDuplicate(error)) throw error
    throw new Problem('already_exists', `There is a snapshot named "${name}" already.`, { cause: error })
  }
}

/** The general snapshot of the image that every runner makes for itself, unless there is one of this name. */
export const ensureBuiltIn = async (transaction: Transaction, name: string): Promise<void> => {
  await transaction`
    insert into snapshots (general, name, state, image, cpu, memory_gib, disk_gib)
    values (true, ${name}, ${firstStateOn('provide')}, 'default', 1, 1, 3) on conflict do nothing`
}

type Change = {
  now: Date
  /** Why it failed; what has not failed has no reason. */
  reason?: string
  /** What its image says. Null keeps what the snapshot has; its own entrypoint counts more than that of the image. */
  image?: { sizeGiB: number | null; user?: string | null; entrypoint?: string[] | null }
}

/**
 * Moves those that `which` finds and that are in a state from which the event leads on; the others stay as they are. Answers
 * the ids of those that were moved.
 */
export const moveSnapshots = async (
  sql: Sql,
  on: MovingEvent,
  which: Piece,
  { now, reason, image }: Change,
): Promise<string[]> => {
  const moves = movesOn(on)
  const { sizeGiB = null, user = null, entrypoint = null } = image ?? {}
  // Old state and new state are read from one row as it is when the write has it: somebody may have moved it meanwhile.
  const rows = await sql<{ id: string }[]>`
    update snapshots set state = case state ${moves.map(({ from, to }) => sql`when ${from} then ${to}`)} end,
      error_reason = ${reason ?? null}, updated_at = ${now},
      size = coalesce(${sizeGiB}, size), os_user = coalesce(${user}, os_user),
      entrypoint = coalesce(entrypoint, ${entrypoint})
    where state in ${sql(moves.map(({ from }) => from))} and (${which})
    returning id`
  return rows.map(({ id }) => id)
}

export const removeSnapshot = async (transaction: Transaction, id: string): Promise<void> => {
  await transaction`delete from snapshots where id = ${id} and state in ${transaction(deletableStates)}`
}
