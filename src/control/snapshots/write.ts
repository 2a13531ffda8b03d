// The only writer of a snapshot's state. All moves come from the table in `lifecycle.ts`.
import { Problem } from '#src/problems.ts'
import { isDuplicate, type Piece, type Sql, type Transaction } from '../storage/database.ts'
import { desktop } from './desktop.ts'
import { deletableStates, type FirstEvent, firstStateOn, type MovingEvent, movesOn } from './lifecycle.ts'
import { readSnapshot, type Snapshot, type SnapshotRow } from './store.ts'

type NewSnapshot = Pick<
  Snapshot,
  'name' | 'image' | 'imageName' | 'osUser' | 'entrypoint' | 'cpu' | 'memoryGiB' | 'diskGiB'
> & { organizationId: string; sourceSandboxId?: string; dockerfile?: string }

/** Inserts a snapshot of an organization. Throws 409 if the unique index shows that the name is in use. */
export const insertSnapshot = async (
  transaction: Transaction,
  on: Exclude<FirstEvent, 'provide'>,
  snapshot: NewSnapshot,
  now: Date,
): Promise<Snapshot> => {
  const { organizationId, name, image, imageName, osUser, entrypoint, cpu, memoryGiB, diskGiB } = snapshot
  try {
    // With a savepoint, a failed insert does not abort the caller's whole transaction.
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
    throw new Problem('already_exists', `A snapshot named "${name}" already exists.`, { cause: error })
  }
}

/** General snapshots of the built-in image in several sizes, which the guides of the public SDK use. */
const sizes = [
  { name: 'daytona-small', cpu: 1, memoryGiB: 1, diskGiB: 3 },
  { name: 'daytona-medium', cpu: 2, memoryGiB: 4, diskGiB: 8 },
  { name: 'daytona-large', cpu: 4, memoryGiB: 8, diskGiB: 10 },
] as const

/**
 * Inserts the general snapshots: the built-in image in several sizes, and `desktop`. Existing rows stay, but `desktop`
 * gets this release's Dockerfile.
 */
export const ensureBuiltIn = async (transaction: Transaction, name: string): Promise<void> => {
  for (const size of [{ ...sizes[0], name }, ...sizes])
    await transaction`
      insert into snapshots (general, name, state, image, cpu, memory_gib, disk_gib)
      values (true, ${size.name}, ${firstStateOn('provide')}, 'default', ${size.cpu}, ${size.memoryGiB}, ${size.diskGiB})
      on conflict do nothing`
  const { image, dockerfile, cpu, memoryGiB, diskGiB } = desktop
  await transaction`
    insert into snapshots (general, name, state, image, dockerfile, cpu, memory_gib, disk_gib)
    values (true, ${desktop.name}, ${firstStateOn('provide')}, ${image}, ${dockerfile}, ${cpu}, ${memoryGiB}, ${diskGiB})
    on conflict do nothing`
  await transaction`
    update snapshots set dockerfile = ${dockerfile}
    where general and image = ${image} and dockerfile is distinct from ${dockerfile}`
}

type Change = {
  now: Date
  /** Why the snapshot failed. Absent if it did not fail. */
  reason?: string
  /** Values from the image. null keeps the snapshot's present value. A snapshot that has an entrypoint keeps its entrypoint. */
  image?: { sizeGiB: number | null; user?: string | null; entrypoint?: string[] | null }
}

/**
 * Applies an event to the snapshots that `which` selects and that have a move for the event. Returns the ids of the snapshots that
 * changed.
 */
export const moveSnapshots = async (
  sql: Sql,
  on: MovingEvent,
  which: Piece,
  { now, reason, image }: Change,
): Promise<string[]> => {
  const moves = movesOn(on)
  const { sizeGiB = null, user = null, entrypoint = null } = image ?? {}
  // The update reads the old state itself, because another transaction may change that state at the same time.
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
