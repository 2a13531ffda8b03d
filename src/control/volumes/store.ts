// The SQL of volumes.
import { isDuplicate, type Piece, type Sql, type Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import type { VolumeDriver } from '#src/wire/runner-link.ts'
import { movesOn, namedStates, type VolumeEvent, type VolumeState } from './lifecycle.ts'

export type VolumeRow = {
  id: string
  organization_id: string
  name: string
  state: VolumeState
  error_reason: string | null
  size_gib: number
  /**
   * Where the files are: on the disk of one runner (`disk`), or in the operator's shared directory (`directory`). Null until a
   * sandbox first mounts the volume.
   */
  driver: VolumeDriver | null
  region_id: string | null
  /**
   * The runner that has the files. Null before the first mount, after the runner was removed, and for a volume in the operator's
   * shared directory.
   */
  runner_id: string | null
  is_made: boolean
  created_at: Date
  updated_at: Date
  last_used_at: Date | null
}

/** Inserts a volume. Throws 409 if the unique index shows that the name is in use. */
export const insertVolume = async (
  transaction: Transaction,
  volume: Pick<VolumeRow, 'id' | 'organization_id' | 'name' | 'size_gib'>,
  now: Date,
): Promise<VolumeRow> => {
  const columns = { ...volume, state: 'ready', created_at: now, updated_at: now }
  try {
    const [row] = await transaction<VolumeRow[]>`insert into volumes ${transaction(columns)} returning *`
    return row as VolumeRow
  } catch (error) {
    if (!isDuplicate(error)) throw error
    throw new Problem('already_exists', `A volume named "${volume.name}" already exists.`, { cause: error })
  }
}

/**
 * Maximum number of volumes in the reply to GET /volumes. An organization's quota of volumes is far below this number.
 */
const mostListed = 10_000

/** Lists volumes, newest first. */
export const listVolumes = (sql: Sql, organizationId: string, includeDeleted: boolean): Promise<VolumeRow[]> =>
  sql<VolumeRow[]>`
    select * from volumes
    where organization_id = ${organizationId} and (${includeDeleted} or state <> 'deleted')
    order by created_at desc, id limit ${mostListed}`

export const findVolume = async (sql: Sql, organizationId: string, id: string): Promise<VolumeRow | undefined> => {
  const [row] = await sql<VolumeRow[]>`
    select * from volumes where organization_id = ${organizationId} and id = ${id} and state <> 'deleted'`
  return row
}

export const findVolumeByName = async (
  sql: Sql,
  organizationId: string,
  name: string,
): Promise<VolumeRow | undefined> => {
  const [row] = await sql<VolumeRow[]>`
    select * from volumes
    where organization_id = ${organizationId} and name = ${name} and state in ${sql(namedStates)}`
  return row
}

/** Locks the volumes with these ids or names, in the order of ids, so that two transactions cannot deadlock. */
export const holdVolumes = (
  transaction: Transaction,
  organizationId: string,
  idsOrNames: readonly string[],
): Promise<VolumeRow[]> =>
  transaction<VolumeRow[]>`
    select * from volumes
    where organization_id = ${organizationId} and state <> 'deleted'
      and (id = any(${idsOrNames as string[]}) or (name = any(${idsOrNames as string[]}) and state in ${transaction(namedStates)}))
    order by id for no key update`

/** Locks the volumes whose files are on the runner, until the transaction ends. Returns their number. */
export const holdVolumesOn = async (transaction: Transaction, runnerId: string): Promise<number> => {
  const { count } = await transaction`
    select from volumes where runner_id = ${runnerId} and state <> 'deleted' order by id for no key update`
  return count
}

/** Stores on which runner the volumes of a sandbox are. Volumes that were mounted before stay where they are. */
export const putOnRunner = (
  transaction: Transaction,
  ids: readonly string[],
  runnerId: string,
  now: Date,
): Promise<VolumeRow[]> =>
  transaction<VolumeRow[]>`
    update volumes set last_used_at = ${now},
      driver = coalesce(volumes.driver, runners.volumes),
      region_id = coalesce(volumes.region_id, runners.region_id),
      runner_id = case when volumes.driver is null and runners.volumes = 'disk' then runners.id else volumes.runner_id end
    from runners where runners.id = ${runnerId} and volumes.id = any(${ids as string[]})
    returning volumes.*`

/** Applies an event to the selected volumes. Returns the volumes that had a move for the event. */
export const moveVolumes = (
  sql: Sql,
  on: Exclude<VolumeEvent, 'create'>,
  which: Piece,
  { now, reason }: { now: Date; reason?: string },
): Promise<VolumeRow[]> => {
  const moves = movesOn(on)
  return sql<VolumeRow[]>`
    update volumes set state = case state ${moves.map(({ from, to }) => sql`when ${from} then ${to}`)} end,
      error_reason = ${reason ?? null}, updated_at = ${now}
    where state in ${sql(moves.map(({ from }) => from))} and (${which})
    returning *`
}

/** SQL condition: no runner can have files of the volume. */
export const isNowhere = (sql: Sql): Piece => sql`(driver is null or (driver = 'disk' and runner_id is null))`

/** SQL condition: no sandbox mounts the volume, and no runner can still have a sandbox that mounted it. */
export const isUnmounted = (sql: Sql): Piece => sql`
  not exists (
    select from sandboxes
    where sandboxes.organization_id = volumes.organization_id and sandboxes.volumes <> '[]' and gone_at is null
      and sandboxes.volumes @> jsonb_build_array(jsonb_build_object('volumeId', volumes.id)))`

/**
 * Finds a sandbox that mounts the volume. Also finds a destroyed sandbox that its runner has not yet reported as
 * removed.
 */
export const findMounting = async (
  sql: Sql,
  { organization_id, id }: VolumeRow,
): Promise<{ name: string; isDestroyed: boolean } | undefined> => {
  const [row] = await sql<{ name: string; isDestroyed: boolean }[]>`
    select name, desired_state = 'destroyed' as "isDestroyed" from sandboxes
    where organization_id = ${organization_id} and volumes <> '[]' and gone_at is null
      and volumes @> ${sql.json([{ volumeId: id }])}
    order by "isDestroyed", created_at limit 1`
  return row
}

/** Deletes the rows of volumes that were deleted before the date `before`. */
export const forgetDeleted = async (sql: Sql, before: Date): Promise<void> => {
  await sql`delete from volumes where state = 'deleted' and updated_at < ${before}`
}

export const forgetVolumesOf = async (transaction: Transaction, organizationId: string): Promise<void> => {
  await transaction`delete from volumes where organization_id = ${organizationId}`
}

export const hasVolumesIn = async (sql: Sql, regionId: string): Promise<boolean> => {
  const [row] = await sql`
    select 1 from volumes where region_id = ${regionId} and state in ${sql(namedStates)} limit 1`
  return row !== undefined
}

/**
 * Deletes the rows of volumes in a region that is being deleted. Such a region has no runner that could report about
 * volumes.
 */
export const forgetVolumesIn = async (transaction: Transaction, regionId: string): Promise<void> => {
  await transaction`delete from volumes where region_id = ${regionId}`
}
